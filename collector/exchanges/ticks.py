"""What Collector needs from an exchange that sends prices by itself.

A `TickSource` is one connection. It subscribes, hands out what arrives, and raises when the
connection ends; it neither reconnects nor waits (streams/tick_feed.py does). An adapter that has
one also has a method `ticks`, beside those of `port.Exchange`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from collector.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.exchanges.exclusive import SessionState
    from collector.exchanges.port import Exchange


@dataclass(frozen=True, slots=True)
class PriceTick:
    """A price of one market. `at` is the venue's time of it, `received` when it was here.

    Both are epoch seconds. Where the venue names no time, `at` is `received`.
    """

    symbol: str
    bid: float
    ask: float
    at: float
    received: float


@dataclass(frozen=True, slots=True)
class SeenClosed:
    """A bar that the venue's stream shows to be closed. Its values come from a request."""

    symbol: str
    timeframe: str
    open_ms: int


StreamEvent = PriceTick | SeenClosed


@dataclass(frozen=True, slots=True)
class TickRequest:
    """Which prices are wanted, and of which (symbol, timeframe) the ends of bars."""

    symbols: tuple[str, ...]
    bars: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class SourceCounts:
    """What became of the messages of one connection that are no event."""

    errors: int = 0
    """Messages that could not be read, or that hold no price."""
    dropped: int = 0
    """Ticks that were dropped because they were not taken in time."""


TURN_SECONDS = 0.005
"""How long messages are handled in one go before other tasks run."""


class Turn:
    """Keeps a flood of messages from holding up heartbeats and leases."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def share(self) -> None:
        """Lets other tasks run when this one has worked for its turn."""
        if time.monotonic() - self._began >= TURN_SECONDS:
            await asyncio.sleep(0)
            self._began = time.monotonic()


class TickSource(Protocol):
    """One connection that sends prices."""

    @property
    def counts(self) -> SourceCounts: ...

    async def connect(self) -> None:
        """Connects and subscribes, with a token for each connection.

        Raises what the permit raises, ExchangeBlocked, ExchangeUnavailable, or BadRequest for what
        can never work. A source that connects later raises these from its iteration.
        """

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        """Everything that arrives. Ends or raises RetryLater with the connection."""

    async def close(self) -> None:
        """Ends the connection and every reading of it. Safe to call twice."""


@runtime_checkable
class StreamingExchange(Protocol):
    """An adapter whose exchange sends prices."""

    def ticks(self, wanted: TickRequest) -> TickSource:
        """A connection to be. Sends nothing yet; raises BadRequest for what it does not offer."""


@runtime_checkable
class SessionExchange(Protocol):
    """An adapter whose prices and history share a session, and which pauses after failures."""

    def session_state(self) -> SessionState:
        """What the session is doing."""

    def pauses(self) -> Mapping[str, Any]:
        """Each of its pauses by name, as a heartbeat shows them."""


def ticks_of(exchange: Exchange, wanted: TickRequest) -> TickSource:
    """A connection for these prices. BadRequest when the exchange sends none."""
    if not isinstance(exchange, StreamingExchange):
        raise BadRequest(f"{exchange.id} sends no live prices")
    return exchange.ticks(wanted)
