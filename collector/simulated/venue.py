"""The exchange without its network: a request in, an answer out."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from collector.simulated.bars import MINUTE
from collector.simulated.encode import page_json, page_rows
from collector.simulated.exchange_info import ExchangeInfo
from collector.simulated.faults.answers import AnswerFault
from collector.simulated.faults.pages import Asked, PageFault
from collector.simulated.faults.rows import RowFault
from collector.simulated.ready_pages import ReadyPages
from collector.simulated.request import PendingAnswer, VenueError, json_outcome
from collector.simulated.tape import newest_trades, trades_from
from collector.simulated.tickers import (
    aggregate_trades,
    book_ticker,
    day_ticker,
    plain_trades,
)
from collector.simulated.truth import Truth, frame_of
from collector.simulated.view import ClientView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.simulated.faults.book import FaultBook
    from collector.simulated.faults.record import RequestFault, Strike
    from collector.simulated.listing import SimulatedMarket
    from collector.simulated.request import PublicRequest

    Strikes = list[tuple[RequestFault, Strike]]
    Ticker = Callable[[ClientView, Any, int], dict[str, Any] | None]

_LONG_MINUTES = 150_000  # Some 15 ms of work: from here on it leaves the event loop.
_TURN = 8  # Markets worked on before other requests get a turn.

_WEIGHTS = {"ping": 1, "time": 1, "exchangeInfo": 20, "klines": 2, "trades": 25, "aggTrades": 4}
_TICKER_WEIGHTS = {"ticker/24hr": (2, 80), "ticker/bookTicker": (2, 4)}


def weight_of(endpoint: str, one_market: bool) -> int:
    """What Binance counts for a request."""
    one, all_markets = _TICKER_WEIGHTS.get(endpoint, (_WEIGHTS.get(endpoint, 1),) * 2)
    return one if one_market else all_markets


class SimulatedVenue:
    """Answers like Binance's public spot API, as wrongly as its faults demand."""

    def __init__(
        self,
        listings: tuple[SimulatedMarket, ...],
        seed: int,
        faults: FaultBook,
        ready_pages: int = 0,
    ) -> None:
        """`ready_pages` is how many pages of past bars are kept as they were sent."""
        self._ready = ReadyPages(ready_pages)
        self._truth = Truth(seed, listings)
        self._faults = faults
        self._info = ExchangeInfo(listings)
        self._routes: dict[
            str, Callable[[PublicRequest, Strikes], PendingAnswer | Awaitable[PendingAnswer]]
        ] = {
            "ping": lambda _ask, _strikes: PendingAnswer(b"{}"),
            "time": lambda ask, _strikes: json_outcome({"serverTime": ask.now_ms}),
            "exchangeInfo": self._exchange_info,
            "klines": self._klines,
            "ticker/24hr": lambda ask, _strikes: self._tickers(ask, day_ticker),
            "ticker/bookTicker": lambda ask, _strikes: self._tickers(ask, book_ticker),
            "trades": self._trades,
            "aggTrades": self._aggregate_trades,
        }

    @property
    def truth(self) -> Truth:
        """What really happened, given the minutes without trades."""
        if self._truth.no_trade != self._faults.no_trade:
            self._truth = replace(self._truth, no_trade=self._faults.no_trade)
        return self._truth

    def list_anew(self, listings: tuple[SimulatedMarket, ...]) -> None:
        """Lists other markets from now on."""
        self._truth = replace(self._truth, listings=listings)
        self._info = ExchangeInfo(listings)

    async def answer(self, ask: PublicRequest) -> tuple[PendingAnswer, tuple[str, ...]]:
        """The answer to a request, and the names of the faults that affected it."""
        strikes = self._faults.strike(ask)
        try:
            route = self._routes.get(ask.endpoint)
            if route is None:
                raise VenueError(-1000, "Unknown endpoint.", status=404)
            found = route(ask, strikes)
            outcome = found if isinstance(found, PendingAnswer) else await found
        except VenueError as error:
            outcome = error.outcome()
        for fault, turn in strikes:
            if isinstance(fault, AnswerFault):
                outcome = fault.change(outcome, turn)
        return outcome, tuple(fault.kind for fault, _ in strikes)

    def view(self) -> ClientView:
        """What a client sees, as wrong as the faults of the history demand."""
        return ClientView(self.truth, self._faults.missing, self._faults.revisions)

    def _exchange_info(self, ask: PublicRequest, _strikes: Strikes) -> PendingAnswer:
        named = self._named(ask)
        return PendingAnswer(
            self._info.body(ask.now_ms, None if named is None else frozenset(named))
        )

    async def _klines(self, ask: PublicRequest, strikes: Strikes) -> PendingAnswer:
        symbol, frame = ask.required("symbol"), frame_of(ask.required("interval"))
        start, end, limit = ask.integer("startTime"), ask.integer("endTime"), ask.limit()
        asked, view = Asked(symbol, start, end, limit, ask.now_ms), self.view()
        # An unknown symbol is refused here, not in a thread.
        if view.truth.series(symbol).listing.gone(ask.now_ms):
            raise VenueError(-1121, "Invalid symbol.")
        for fault, turn in strikes:
            if isinstance(fault, PageFault):
                asked = fault.change(asked, turn)
        symbol, start, end, limit, now_ms = asked
        spoilers = [(fault, turn) for fault, turn in strikes if isinstance(fault, RowFault)]
        ready = None if spoilers else self._ready.get(view, (symbol, frame, start, end, limit))
        if ready is not None:
            return PendingAnswer(ready[0], rows=ready[1])
        wanted = (symbol, frame, start, end, limit, now_ms)
        if limit * frame.ms // MINUTE.ms > _LONG_MINUTES:
            bars = await asyncio.to_thread(view.page, *wanted)
        else:
            bars = view.page(*wanted)
        if not spoilers:
            body = page_json(bars, frame)
            ended = len(bars) == limit and frame.end(int(bars.open_ms[-1])) <= now_ms
            if ended and not view.revisions:
                self._ready.put(view, wanted[:-1], body, limit)
            return PendingAnswer(body, rows=len(bars))
        rows = page_rows(bars, frame)
        for fault, turn in spoilers:
            rows = fault.change(rows, turn)
        # The standard library writes NaN where orjson would tidy it away.
        return PendingAnswer(json.dumps(rows, separators=(",", ":")).encode(), rows=len(rows))

    async def _tickers(self, ask: PublicRequest, ticker: Ticker) -> PendingAnswer:
        view, truth = self.view(), self.truth
        if ask.symbol is not None:
            return json_outcome(ticker(view, truth.series(ask.symbol), ask.now_ms) or {})
        named = self._named(ask)
        ids = [listing.id for listing in truth.listings] if named is None else named
        found = []
        for number, venue_id in enumerate(ids):
            found.append(ticker(view, truth.series(venue_id), ask.now_ms))
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        return json_outcome([one for one in found if one is not None])

    def _trades(self, ask: PublicRequest, _strikes: Strikes) -> PendingAnswer:
        view, limit = self.view(), ask.limit()
        series = view.truth.series(ask.required("symbol"))
        trades = newest_trades(view, series, limit, ask.now_ms)
        return json_outcome(plain_trades(trades, series.listing), rows=len(trades))

    def _aggregate_trades(self, ask: PublicRequest, _strikes: Strikes) -> PendingAnswer:
        """Trades from a number or a moment on, else the newest."""
        view, limit = self.view(), ask.limit()
        series = view.truth.series(ask.required("symbol"))
        if "fromId" in ask.query or "startTime" in ask.query:
            trades = trades_from(view, series, ask, limit)
        else:
            trades = newest_trades(view, series, limit, ask.now_ms)
        return json_outcome(aggregate_trades(trades, series.listing), rows=len(trades))

    def _named(self, ask: PublicRequest) -> list[str] | None:
        """The markets a request names in `symbol` or `symbols`; None when it names none."""
        if ask.symbol is not None:
            names = [ask.symbol]
        elif "symbols" in ask.query:
            try:
                names = orjson.loads(ask.query["symbols"])
            except orjson.JSONDecodeError:
                raise VenueError(
                    -1100, "Illegal characters found in parameter 'symbols'."
                ) from None
        else:
            return None
        return [self.truth.series(str(name)).listing.id for name in names]
