"""A small local venue that replays recorded answers, and a permit that writes everything down."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from collector.clock import SystemClock
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.market.timeframe import Timeframe
from collector.simulated.adapter import SimulatedAdapter
from tests.support.dialects import DIALECTS
from tests.support.dialects.dialect import BODY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.clock import Clock
    from collector.exchanges.port import Answer, Call, Markets

Turn = Callable[[web.Request], Awaitable[web.StreamResponse]]

RECORDINGS = Path(__file__).parents[1] / "recordings"
MINUTE = Timeframe.parse("1m")
FIRST_BAR_MS = 1_735_689_600_000


class NotedPermit:
    """Grants every request, records it, and denies with `deny` once `grants` are used up."""

    def __init__(self, *, grants: int | None = None, deny: Exception | None = None) -> None:
        self.granted: list[Call] = []
        self.answers: list[Answer] = []
        self.grants = grants
        self.deny = deny
        self.late = 0
        """How many of the next tokens age before their request can leave."""
        self.wait_s = 0.0
        """How long each token takes to come."""

    async def before(self, call: Call) -> float:
        await asyncio.sleep(self.wait_s)
        if self.deny is not None and len(self.granted) == (self.grants or 0):
            raise self.deny
        self.granted.append(call)
        self.late -= 1
        return 0.0 if self.late >= 0 else math.inf

    async def after(self, answer: Answer) -> None:
        await asyncio.sleep(0)
        self.answers.append(answer)


@dataclass
class Venue:
    """Answers from the recordings of `name`, except for what `turns` return first."""

    name: str
    requests: list[web.Request] = field(default_factory=list)
    turns: deque[Turn] = field(default_factory=deque)
    always: Turn | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)
    arrival: asyncio.Condition = field(default_factory=asyncio.Condition)
    runner: web.AppRunner | None = None

    async def arrived(self, count: int) -> None:
        """Waits until `count` requests have come."""
        async with self.arrival:
            await self.arrival.wait_for(lambda: len(self.requests) >= count)

    @property
    def connections(self) -> int:
        """How many are open."""
        assert self.runner is not None
        assert self.runner.server is not None
        return len(self.runner.server.connections)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        request[BODY] = json.loads(text) if text.startswith("{") else None
        self.requests.append(request)
        async with self.arrival:
            self.arrival.notify_all()
        if self.turns:
            return await self.turns.popleft()(request)
        if self.always is not None:
            return await self.always(request)
        return web.json_response(self.recorded(request))

    def recorded(self, request: web.Request) -> Any:
        dialect = DIALECTS[self.name]
        return recording(dialect.folder, dialect.recording_for(request))


@dataclass(frozen=True)
class Desk:
    venue: Venue
    exchange: CcxtExchange
    permit: NotedPermit
    address: str

    def assert_one_token_a_request(self) -> None:
        """Every token was spent on a request, and the permit received each outcome."""
        assert len(self.permit.granted) == len(self.venue.requests)
        self.assert_no_request_without_a_token()

    def assert_no_request_without_a_token(self) -> None:
        """The same, but a call that was broken off may have left a token unused."""
        assert len(self.permit.granted) >= len(self.venue.requests)
        assert Counter(answer.call for answer in self.permit.answers) == Counter(
            self.permit.granted
        )


def recording(venue: str, name: str) -> Any:
    return json.loads((RECORDINGS / venue / f"{name}.json").read_text())


@asynccontextmanager
async def serving(venue: Venue) -> AsyncIterator[str]:
    """Serves `venue` on a free loopback port; gives its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", venue.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    venue.runner = runner
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        venue.released.set()
        await runner.cleanup()


@asynccontextmanager
async def opened(
    exchange_id: str,
    *,
    permit: NotedPermit | None = None,
    clock: Clock | None = None,
    timeout_ms: int = 5_000,
    markets: bool = True,
) -> AsyncIterator[Desk]:
    """The adapter of an exchange at a local venue, by default with its markets loaded."""
    # The simulated exchange speaks spot Binance's format.
    venue = Venue("binance" if exchange_id == "simulated" else exchange_id)
    loading = NotedPermit()
    async with serving(venue) as address:
        adapter = SimulatedAdapter if exchange_id == "simulated" else CcxtExchange
        exchange = adapter(
            exchange_id,
            permit or loading,
            urls={exchange_id: address},
            clock=clock or SystemClock(),
            timeout_ms=timeout_ms,
        )
        try:
            if markets:
                await load_quietly(exchange, venue, address)
            yield Desk(venue, exchange, permit or loading, address)
        finally:
            await exchange.close()


_recorded_markets: dict[str, Markets] = {}


async def load_quietly(exchange: CcxtExchange, venue: Venue, address: str) -> None:
    """Gives the adapter its markets through another one, so that the books start empty.

    Recordings do not change: the markets of an exchange are loaded from them once.
    """
    if exchange.id not in _recorded_markets:
        other = CcxtExchange(
            exchange.id, NotedPermit(), urls={exchange.id: address}, clock=SystemClock()
        )
        try:
            _recorded_markets[exchange.id] = await other.load_markets()
        finally:
            await other.close()
    exchange.restore_markets(_recorded_markets[exchange.id])
    venue.requests.clear()


def says(
    status: int, body: Any = None, *, text: str | None = None, headers: dict[str, str] | None = None
) -> Turn:
    """A turn that answers with this."""

    async def turn(_: web.Request) -> web.StreamResponse:
        if text is not None:
            return web.Response(status=status, text=text, headers=headers)
        return web.json_response(body if body is not None else {}, status=status, headers=headers)

    return turn


async def drops(request: web.Request) -> web.StreamResponse:
    """Reads the request and closes the connection without a word."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def breaks_off(request: web.Request) -> web.StreamResponse:
    """Promises more bytes than it sends."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'[[1735689600000,"93576.0')
    assert request.transport is not None
    request.transport.close()
    return response


def hangs(venue: Venue) -> Turn:
    """Answers only when the test is over."""

    async def turn(_: web.Request) -> web.StreamResponse:
        await venue.released.wait()
        return web.Response()

    return turn
