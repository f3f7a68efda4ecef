"""What a price stream sends, with a token each: its requests and its websockets' handshakes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import aiohttp
from ccxt.base.errors import NetworkError

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.errors import sorted_error
from collector.exchanges.ccxt.session import lower_case
from collector.exchanges.ccxt.visit import Reply
from collector.exchanges.port import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.exchanges.ccxt.request_hook import Desk
    from collector.exchanges.port import Health

HANDSHAKE_SECONDS = 10.0
"""How long a venue may take to accept a websocket, from the token on."""
ENDPOINT = "stream"

T = TypeVar("T")


async def open_websocket(desk: Desk, connect: Callable[[], Awaitable[T]]) -> T:
    """The connection that `connect` opens with aiohttp, once there is a token for it.

    A refused handshake is judged by its status and its Retry-After like any other answer.
    """

    async def limited() -> T:
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            return await connect()

    return await with_token(desk, ENDPOINT, limited)


async def with_token(desk: Desk, endpoint: str, send: Callable[[], Awaitable[T]]) -> T:
    """What `send` returns, once there is a token for it; the permit gets the outcome.

    Raises what the permit raises, and the failures of `send` as errors of collector.errors.
    """
    call, permit, clock = Call(desk.quirks.exchange_id, endpoint), desk.outcomes.permit, desk.clock
    await permit.before(call)
    began = clock.monotonic()
    outcome, arrived_at = "none", None
    health: Health = "unknown"
    error: Exception | None = None
    try:
        result = await send()
        outcome, health, arrived_at = "ok", "good", clock.monotonic()
    except Exception as failure:
        error, arrived_at = _judged(failure, desk), clock.monotonic()
        if isinstance(error, ExchangeUnavailable):
            health = "bad"
        if error is failure:
            raise
        raise error from failure
    finally:
        seconds = clock.monotonic() - began
        await permit.after(
            Answer(call, outcome, seconds, health=health, error=error, arrived_at=arrived_at)
        )
    return result


def _judged(failure: Exception, desk: Desk) -> Exception:
    """The failure as one of Collector's errors. A refused handshake has a status and headers."""
    reply = None
    if isinstance(failure, aiohttp.WSServerHandshakeError):
        reply = Reply(failure.status, lower_case(failure.headers or {}))
    if isinstance(failure, (aiohttp.ClientError, OSError)):
        failure = NetworkError(f"no websocket: {failure!r}")
    return sorted_error(failure, desk.quirks, reply, desk.clock)
