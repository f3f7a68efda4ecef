"""The simulated exchange as a server on this machine's loopback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl

from aiohttp import web

from collector.clock import SystemClock
from collector.durations import MINUTE_MS
from collector.simulated.control import Control
from collector.simulated.faults.answers import banned
from collector.simulated.faults.arrival import LateArrival
from collector.simulated.faults.book import FaultBook
from collector.simulated.journal import Journal, JournalEntry
from collector.simulated.listing import listings
from collector.simulated.relisting import delisted, relisted, renamed
from collector.simulated.request import PendingAnswer, PublicRequest, refusal
from collector.simulated.request_limit import Limit, RequestLimit
from collector.simulated.resetting import reset
from collector.simulated.road import Road
from collector.simulated.sockets import TICKS_PER_SECOND, Sockets
from collector.simulated.venue import SimulatedVenue, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from collector.clock import Clock
    from collector.simulated.faults.record import Fault
    from collector.simulated.listing import SimulatedMarket
    from collector.simulated.request_limit import Verdict
    from collector.simulated.truth import Truth

HOST = "127.0.0.1"  # Loopback only: it has no business on a network.
_API = "/api/v3/"


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A request that has arrived: the limit's verdict, and the weight used with it."""

    ask: PublicRequest
    verdict: Verdict
    used: int


class SimulatedExchange:
    """A running exchange: `async with SimulatedExchange() as exchange: exchange.url`.

    `port` 0 takes a free one. The exchange's now is the clock's, `offset_ms` ahead. `offset_ms`,
    `faults` and `journal` may be used from the same event loop while it runs; other processes use
    /sim.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        listed: Iterable[SimulatedMarket] | None = None,
        seed: int = 7,
        limit: Limit | None = None,
        faults: Iterable[Fault] = (),
        clock: Clock | None = None,
        offset_ms: int = 0,
        journal_path: Path | None = None,
        ticks_per_second: float = TICKS_PER_SECOND,
        ready_pages: int = 0,
    ) -> None:
        """`ticks_per_second` is how often a websocket sends each price, `ready_pages` how many
        pages of past bars are kept as they were sent.
        """
        self._clock: Clock = SystemClock() if clock is None else clock
        self._port = port
        self.offset_ms = offset_ms
        # Arrivals are measured by the monotonic clock, starting at the date of the start.
        self._started_ms = self.now_ms() - self._clock.monotonic() * 1000
        self.journal = Journal(journal_path)
        self.faults = FaultBook(seed, self._clock.monotonic)
        self.faults.add(*faults)
        self.limit = RequestLimit(limit or Limit())
        self._venue = SimulatedVenue(
            tuple(listings() if listed is None else listed), seed, self.faults, ready_pages
        )
        self._closing = asyncio.Event()
        self.sockets = Sockets(
            self._venue, self.faults, self.now_ms, self._closing, ticks_per_second
        )
        self._control = Control(
            self._venue, self.faults, self.journal, self.sockets.counts, self.now_ms
        )
        self._weights = (0, 0)
        self._sent = count(1)
        self._road: Road[_Arrival] = Road(self._arrival_ms)
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """Where it answers, without a slash at the end."""
        return f"http://{HOST}:{self._port}"

    @property
    def truth(self) -> Truth:
        """The clean and final history that this exchange spoils."""
        return self._venue.truth

    def delist(self, symbol: str, *, at_ms: int | None = None, hidden: bool = False) -> None:
        """Ends a market, now or at `at_ms`; a `hidden` one is not in the list any more."""
        at_ms = self.now_ms() if at_ms is None else at_ms
        self._venue.list_anew(delisted(self.truth.listings, symbol, at_ms, hidden=hidden))

    def relist(self, symbol: str, *, at_ms: int | None = None) -> None:
        """Opens a delisted market again, now or at `at_ms`."""
        at_ms = self.now_ms() if at_ms is None else at_ms
        self._venue.list_anew(relisted(self.truth.listings, symbol, at_ms))

    def rename(self, symbol: str, to: str) -> None:
        """Gives a market another symbol."""
        self._venue.list_anew(renamed(self.truth.listings, symbol, to))

    def now_ms(self) -> int:
        """The exchange's date."""
        return self._clock.wall_ms() + self.offset_ms

    async def start(self) -> None:
        """Listens; `url` is right from here on. Raises OSError when the port is taken."""
        server = web.Server(self._serve, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self._port, backlog=1024).start()
        except OSError:
            await self.stop()
            raise
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Ends every connection, those that hang too."""
        self._closing.set()
        self._road.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self.journal.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/sim/"):
            return await self._control.answer(request)
        if Sockets.is_meant(request.path):
            return await self.sockets.serve(request)
        sent = PublicRequest(
            number=next(self._sent),
            endpoint=request.path.removeprefix(_API),
            now_ms=self.now_ms(),
            query=_query(request.rel_url.raw_query_string),
        )
        late = self.faults.hold_up(sent)
        here = await self._road.travel(sum(late), partial(self._arrive, request, sent))
        ask = here.ask
        if here.verdict.status == 200:
            outcome, struck = await self._venue.answer(ask)
        else:
            outcome, struck = _refused(here.verdict, ask.now_ms), ()
        struck = (*[LateArrival.kind] * len(late), *struck)
        if outcome.ban_seconds:
            self.limit.ban(self._arrival_ms(), outcome.ban_seconds)
        if outcome.delay_ms:
            await asyncio.sleep(outcome.delay_ms / 1000)
        status = outcome.status if outcome.ending in ("whole", "cut") else 0
        self.journal.answer(ask.number, status, self._arrival_ms(), outcome.rows, struck)
        return await self._send(request, outcome, here.used)

    def _arrive(self, request: web.BaseRequest, sent: PublicRequest, at_ms: float) -> _Arrival:
        """The exchange sees a request: it counts from here on."""
        ask = replace(sent, number=self.journal.next_seq, now_ms=self.now_ms())
        weight = weight_of(ask.endpoint, one_market=ask.symbol is not None)
        verdict = self.limit.admit(at_ms, weight)
        self.journal.arrive(_entry(request, ask, at_ms, weight, verdict))
        return _Arrival(ask, verdict, self._used_weight(ask.now_ms, weight))

    async def _send(
        self, request: web.BaseRequest, outcome: PendingAnswer, used: int
    ) -> web.StreamResponse:
        if outcome.ending == "hang":
            await self._closing.wait()
        if outcome.ending in ("hang", "reset"):
            reset(request)
            return web.Response()
        own = {} if outcome.foreign else {"X-MBX-USED-WEIGHT-1M": str(used)}
        headers = {"Content-Type": outcome.content_type, **own, **outcome.headers}
        if self.offset_ms:
            headers["Date"] = formatdate(self.now_ms() / 1000, usegmt=True)
        if outcome.ending == "whole":
            return web.Response(body=outcome.body, status=outcome.status, headers=headers)
        headers["Content-Length"] = str(len(outcome.body))
        response = web.StreamResponse(status=outcome.status, headers=headers)
        await response.prepare(request)
        await response.write(outcome.body[: len(outcome.body) // 2])
        if request.transport is not None:
            request.transport.close()
        return response

    def _arrival_ms(self) -> float:
        return self._started_ms + self._clock.monotonic() * 1000

    def _used_weight(self, now_ms: int, weight: int) -> int:
        """Weight used in this minute of the clock, which is how Binance counts it."""
        minute = now_ms // MINUTE_MS
        counted, used = self._weights
        self._weights = (minute, used + weight if minute == counted else weight)
        return self._weights[1]


def _entry(
    request: web.BaseRequest, ask: PublicRequest, at_ms: float, weight: int, verdict: Verdict
) -> JournalEntry:
    return JournalEntry(
        seq=ask.number,
        at_ms=round(at_ms, 3),
        method=request.method,
        path=request.path,
        symbol=ask.symbol,
        interval=ask.interval,
        start_ms=_number(ask, "startTime"),
        end_ms=_number(ask, "endTime"),
        limit=_number(ask, "limit"),
        weight=weight,
        violation=verdict.violation,
    )


def _query(text: str) -> dict[str, str]:
    """The parameters of a request; the usual ones hold nothing that is encoded."""
    if "%" in text or "+" in text:
        return dict(parse_qsl(text))
    return dict(pair.split("=", 1) for pair in text.split("&") if "=" in pair)


def _number(ask: PublicRequest, name: str) -> int | None:
    text = ask.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _refused(verdict: Verdict, now_ms: int) -> PendingAnswer:
    wait_s = verdict.retry_after_s
    if verdict.status == 418:
        return banned(now_ms + wait_s * 1000, wait_s)
    return refusal(429, -1003, "Too many requests; please slow down.", wait_s)
