"""A price stream through ccxt's own classes, at a local venue that sends what a test wants."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from collector.backoff import Backoff
from collector.clock import SystemClock
from collector.exchanges.ticks import TickRequest, ticks_of
from collector.streams.last_prices import LastPrices
from collector.streams.tick_feed import TickFeed
from tests.support.ccxt_venue import opened, says
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from collector.exchanges.port import Answer
    from collector.exchanges.ticks import StreamEvent
    from tests.support.ccxt_venue import Desk, NotedPermit, Turn

SYMBOLS = {"BTC/USDT": "BTCUSDT", "ETH/BTC": "ETHBTC", "LUNA/USDT": "LUNAUSDT"}
SECONDS = 20
"""How long a test waits for what has to come."""

Script = Callable[[web.WebSocketResponse], Awaitable[object]]


def tick(symbol: str, price: float, at: float | None = None) -> str:
    """A message of Binance's stream of best offers; with `at` it names the venue's time."""
    message: dict[str, Any] = {"u": 1, "s": SYMBOLS[symbol], "b": f"{price}", "B": "1"}
    message |= {"a": f"{price}", "A": "1"}
    if at is not None:
        message |= {"e": "bookTicker", "E": round(at * 1000), "T": round(at * 1000)}
    return json.dumps(message)


def socket(script: Script) -> Turn:
    """A turn of the venue: accepts a websocket, reads the subscription, and plays the script."""

    async def turn(request: web.Request) -> web.StreamResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        await response.receive()
        await script(response)
        return response

    return turn


class Line:
    """The venue's end of a connection, which the test holds: it stays open until it is closed."""

    def __init__(self) -> None:
        self.accepted = asyncio.Event()
        self.response: web.WebSocketResponse | None = None

    async def send(self, *messages: str | bytes) -> None:
        """Sends all of them in one go."""
        await asyncio.wait_for(self.accepted.wait(), SECONDS)
        assert self.response is not None
        for message in messages:
            if isinstance(message, bytes):
                await self.response.send_bytes(message)
            else:
                await self.response.send_str(message)

    async def __call__(self, response: web.WebSocketResponse) -> None:
        self.response = response
        self.accepted.set()
        async for _ in response:
            pass


@dataclass
class Stream:
    """Everything of a price stream that stands between a venue and a snapshot."""

    desk: Desk
    feed: TickFeed
    prices: LastPrices = field(default_factory=LastPrices)
    pauses: list[float] = field(default_factory=list)
    published: dict[str, float] = field(default_factory=dict)

    def take(self, event: StreamEvent) -> None:
        self.prices.take(event, 0.0)  # type: ignore[arg-type]  # No bars are asked for.

    def publish(self) -> dict[str, float]:
        """The last price of each symbol that was ever published."""
        self.published |= {each.symbol: each.bid for each in self.prices.snapshot(time.time())}
        return self.published

    async def shows(self, btc: float, eth: float | None = None) -> None:
        """Waits until these are the published prices."""
        wanted = {"BTC/USDT": btc} | ({} if eth is None else {"ETH/BTC": eth})
        await until(lambda: self.publish() == wanted, f"published {wanted}", SECONDS)

    @property
    def connections(self) -> int:
        return len(self.desk.venue.requests)

    @property
    def outcomes(self) -> list[Answer]:
        """What the permit was told of the connections."""
        return [each for each in self.desk.permit.answers if each.call.endpoint == "stream"]


@asynccontextmanager
async def streaming(
    *turns: Turn,
    exchange_id: str = "binance",
    symbols: Iterable[str] = SYMBOLS,
    permit: NotedPermit | None = None,
    rests: int = 0,
) -> AsyncIterator[Stream]:
    """A stream of these symbols. After its last turn the venue refuses; the feed rests `rests`
    times and then for good."""
    async with opened(exchange_id, permit=permit) as desk:
        desk.venue.turns.extend(turns)
        desk.venue.always = says(503)

        async def rest(seconds: float) -> None:
            stream.pauses.append(seconds)
            if len(stream.pauses) > rests:
                await asyncio.Event().wait()

        request = TickRequest(tuple(symbols))
        feed = TickFeed(
            exchange_id,
            lambda: ticks_of(desk.exchange, request),
            SystemClock(),
            backoff=Backoff(1.0, 64.0, jitter=0.0),
            rest=rest,
        )
        stream = Stream(desk, feed)
        running = asyncio.create_task(feed.run(stream.take))
        try:
            yield stream
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
