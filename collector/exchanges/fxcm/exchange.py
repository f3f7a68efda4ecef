"""FXCM behind the port of exchanges. History is requested one call at a time, a token each."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from collector.backoff_controller import backoff_diag
from collector.durations import DAY_MS
from collector.errors import (
    BadRequest,
    CollectorError,
    ExchangeUnavailable,
    MarketsUnavailable,
)
from collector.exchanges.first_bar import FirstBar, NotConfirmed, first_inside
from collector.exchanges.fxcm.failures import EXCHANGE_ID, FxcmNoData, FxcmNotReady
from collector.exchanges.fxcm.history_page import SDK_NAMES, HistoryWindow
from collector.exchanges.fxcm.open_session import FAILURES
from collector.exchanges.fxcm.quirks import LARGEST_PAGE
from collector.exchanges.fxcm.quota_settings import HistoryTarget
from collector.exchanges.fxcm.ticks import FxcmTicks
from collector.exchanges.port import Answer, Call, Market, Markets, Ticker
from collector.exchanges.reporting import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.exchanges.exclusive import SessionState
    from collector.exchanges.first_bar import Beginning
    from collector.exchanges.fxcm.bars import BidAskBars
    from collector.exchanges.fxcm.history_turns import HistoryTurns
    from collector.exchanges.fxcm.open_session import OpenSession
    from collector.exchanges.fxcm.wire import Offer
    from collector.exchanges.port import Health, Permit, TradePage
    from collector.exchanges.ticks import TickRequest, TickSource
    from collector.market import answer
    from collector.market.calendar.calendar import Calendar
    from collector.market.timeframe import Timeframe

FIRST_MS = 946_684_800_000  # 2000-01-01: FXCM has no minutes from before.


class FxcmExchange:
    """One account's view of FXCM."""

    id = EXCHANGE_ID

    def __init__(
        self,
        session: OpenSession,
        permit: Permit,
        calendar: Calendar,
        clock: Clock,
        turns: HistoryTurns,
    ) -> None:
        self._session = session
        self._permit = permit
        self._calendar = calendar
        self._clock = clock
        self._turns = turns
        self._symbols: frozenset[str] | None = None
        self._probes: dict[tuple[str, str, int, int, bool], int | None] = {}

    async def load_markets(self) -> Markets:
        offers = await self._offers()
        if not offers:
            raise ExchangeUnavailable("fxcm: the table of offers is empty")
        markets = Markets(self.id, tuple(map(_market, offers)), tuple(SDK_NAMES))
        self.restore_markets(markets)
        return markets

    def restore_markets(self, markets: Markets) -> None:
        self._symbols = frozenset(market.symbol for market in markets.markets)

    async def fetch_bars(
        self, symbol: str, timeframe: Timeframe, since_ms: int, limit: int
    ) -> answer.Answer:
        """At most `limit` bars, and never more than a page, in one call of the SDK."""
        self._require(symbol)
        frame = timeframe.by(self._calendar)
        window = HistoryWindow(frame, since_ms, max(1, min(limit, LARGEST_PAGE)))
        try:
            bars = await self._history(symbol, window)
        except FxcmNoData:
            if not self._session.is_market_open:
                raise  # The answer to anything while the market is closed.
            return window.nothing()
        return window.answer(bars, self._calendar)

    async def first_bar(self, symbol: str, timeframe: Timeframe) -> Beginning | None:
        """By a search in windows of a page: days reach further back here than minutes do.

        A search that the permit interrupts goes on, when called again, where it stopped.
        """
        self._require(symbol)

        async def probe(
            rung: Timeframe, since_ms: int, bars: int, *, again: bool = False
        ) -> int | None:
            key = (symbol, rung.name, since_ms, bars, again)
            if key not in self._probes:
                answer = await self.fetch_bars(symbol, rung, since_ms, bars)
                self._probes[key] = first_inside(answer)
            return self._probes[key]

        frame = timeframe.by(self._calendar)
        search = FirstBar(
            probe, lambda _: LARGEST_PAGE, frame.floor(FIRST_MS), self._clock.wall_ms()
        )
        try:
            found = await search.found(frame, ())
        except NotConfirmed:
            self._forget_search(symbol, frame)
            raise
        self._forget_search(symbol, frame)
        return found

    def _forget_search(self, symbol: str, frame: Timeframe) -> None:
        mine = (symbol, frame.name)
        self._probes = {key: each for key, each in self._probes.items() if key[:2] != mine}

    async def fetch_trades(self, symbol: str, since_ms: int) -> TradePage:
        raise BadRequest("fxcm serves no trades")

    async def fetch_tickers(self) -> tuple[Ticker, ...]:
        offers = sorted(await self._offers(), key=lambda offer: offer.instrument)
        now_ms = self._clock.wall_ms()
        return tuple(
            Ticker(each.instrument, each.bid, each.bid, each.ask, None, each.time_ms or now_ms)
            for each in offers
        )

    def ticks(self, wanted: TickRequest) -> TickSource:
        """Prices of the session's offers. They are no history, and cost no token."""
        for symbol in wanted.symbols:
            self._require(symbol)
        return FxcmTicks(self._session, wanted)

    def session_state(self) -> SessionState:
        return self._session.state

    def pauses(self) -> Mapping[str, Any]:
        """What follows failures of logins and of history."""
        return backoff_diag([self._session.backoff])

    async def server_ms(self) -> int:
        raise BadRequest("fxcm does not report its time")

    async def close(self) -> None:
        await self._session.close()

    def _require(self, symbol: str) -> None:
        if self._symbols is None:
            raise MarketsUnavailable("fxcm: its markets are not known yet")
        if symbol not in self._symbols:
            raise BadRequest(f"fxcm has no instrument {symbol!r}")

    async def _offers(self) -> tuple[Offer, ...]:
        """The table of offers as it is. It is no history, and costs no token."""
        self._session.refuse_while_paused()
        client = await self._session.client()
        try:
            return await client.offers()
        except FAILURES as error:
            self._session.failed(error)
            raise

    async def _history(self, symbol: str, window: HistoryWindow) -> BidAskBars:
        """One call. The SDK makes one at a time, so the token is bought when it is our turn."""
        name = window.sdk_name
        # A page of months ends centuries from now; a day is for clocks that differ.
        to_ms = max(window.from_ms, min(window.to_ms, self._clock.wall_ms() + DAY_MS))
        key = str(HistoryTarget.of(symbol, name))
        async with self._turns.turn(key):
            self._session.refuse_while_paused()
            client = await self._session.client()
            call = Call(self.id, "history", key=key)
            await self._permit.before(call)
            began = self._clock.monotonic()
            try:
                bars = await client.history(symbol, name, window.from_ms, to_ms)
            except CollectorError as error:
                await self._report(call, began, error)
                raise
            except BaseException:
                # The caller no longer waits for it; the SDK works on it all the same.
                given_up = Answer(call, "none", self._clock.monotonic() - began)
                with suppress(Exception):
                    await report(self._permit, given_up)
                raise
            await self._report(call, began, None)
            self._session.data_arrived()
            return bars

    async def _report(self, call: Call, began: float, error: CollectorError | None) -> None:
        now = self._clock.monotonic()
        health = self._health_of(error)
        if error is not None and health == "bad":
            self._session.failed(error)
        outcome = "ok" if error is None else error.code
        answer = Answer(
            call,
            outcome,
            now - began,
            health=health,
            error=error,
            arrived_at=now,
            is_timed=error is None,
        )
        await report(self._permit, answer)

    def _health_of(self, error: CollectorError | None) -> Health:
        if error is None:
            return "good"
        if isinstance(error, FxcmNoData) and self._session.is_market_open:
            return "good"
        if isinstance(error, FxcmNoData | FxcmNotReady) and not self._session.is_market_open:
            return "unknown"
        return "bad" if isinstance(error, ExchangeUnavailable) else "unknown"


def _market(offer: Offer) -> Market:
    """Pairs are written with a slash, as everywhere; other instruments have a name alone.

    One that the account does not subscribe to has history all the same, so all are active.
    """
    base, _, quote = offer.instrument.partition("/")
    return Market(
        symbol=offer.instrument,
        venue_id=offer.offer_id,
        base=base,
        quote=quote,
        raw={"digits": offer.digits, "point_size": offer.point_size},
    )
