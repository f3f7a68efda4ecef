"""Opens a connection that stays, with a token like any request."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from collector.errors import ExchangeUnavailable
from collector.exchanges.port import Answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.clock import Clock
    from collector.exchanges.port import Call, Health, Permit

T = TypeVar("T")


async def with_token(
    permit: Permit, call: Call, clock: Clock, connect: Callable[[], Awaitable[T]]
) -> T:
    """What `connect` returns, once there is a token for it; the permit gets the outcome.

    Raises what the permit raises. What `connect` raises comes out as it is: it has to be an error
    of collector.errors.
    """
    await permit.before(call)
    began = clock.monotonic()
    try:
        connection = await connect()
    except BaseException as error:
        health: Health = "bad" if isinstance(error, ExchangeUnavailable) else "unknown"
        failure = error if isinstance(error, Exception) else None
        seconds = clock.monotonic() - began
        await permit.after(Answer(call, "none", seconds, health=health, error=failure))
        raise
    ended = clock.monotonic()
    await permit.after(Answer(call, "ok", ended - began, health="good", arrived_at=ended))
    return connection


async def announced(permit: Permit, call: Call, clock: Clock) -> None:
    """A token for a connection that a library opens later; what comes of it is not reported."""
    await permit.before(call)
    await permit.after(Answer(call, "ok", 0.0, arrived_at=clock.monotonic()))
