"""An exchange through ccxt: the adapter behind `port.Exchange` for every venue ccxt knows."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.durations import DAY_MS
from collector.errors import BadRequest, ExchangeUnavailable, MarketsUnavailable, NotServed
from collector.exchanges.ccxt.addresses import checked_address, moved
from collector.exchanges.ccxt.empty import EmptyAnswers
from collector.exchanges.ccxt.errors import sorted_error
from collector.exchanges.ccxt.key import KeyCheck
from collector.exchanges.ccxt.markets import markets_of
from collector.exchanges.ccxt.page import Learnt, answer_of
from collector.exchanges.ccxt.request_hook import Desk, hooked_class
from collector.exchanges.ccxt.tickers import tickers_of
from collector.exchanges.ccxt.trade_questions import TradeQuestions
from collector.exchanges.ccxt.trades import trades_answer
from collector.exchanges.ccxt.visit import OutcomeReports, Visit, entered
from collector.exchanges.first_bar import (
    BEFORE_ALL_MARKETS_MS,
    FirstBar,
    NotConfirmed,
    first_inside,
)
from collector.exchanges.quirks.lookup import ccxt_quirks
from collector.market.answer import Question
from collector.market.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.clock import Clock
    from collector.exchanges.first_bar import Beginning
    from collector.exchanges.port import Markets, Permit, Ticker, TradePage
    from collector.exchanges.quirks import Quirks
    from collector.exchanges.ticks import TickRequest, TickSource
    from collector.market.answer import Answer
    from collector.market.timeframe import Timeframe
    from collector.secrets import Credentials

TIMEOUT_MS = 10_000
HORIZON_MOVES_BARS = 50
"""Requests this far before the oldest served bar are still sent: it moves on while a job runs."""


class CcxtExchange:
    """One venue, one ccxt instance. Calls the permit before every request, retries nothing.

    Safe to share between the tasks of one event loop. Raises only errors of collector.errors (and
    asyncio.CancelledError); what the permit raises is passed on unchanged.
    """

    def __init__(
        self,
        exchange_id: str,
        permit: Permit,
        *,
        clock: Clock,
        urls: Mapping[str, str] | None = None,
        timeout_ms: int = TIMEOUT_MS,
        key: Credentials | None = None,
    ) -> None:
        """`urls` are COLLECTOR_EXCHANGE_URLS: exchange id to the scheme, host and port to use.

        With a `key`, the first request checks its permissions; KeyRefused when it may do too much.
        """
        self.id = exchange_id
        self.quirks = ccxt_quirks(exchange_id)
        self._clock = clock
        given = (urls or {}).get(exchange_id)
        address = None if given is None else checked_address(exchange_id, given)
        self._ccxt = hooked_class(exchange_id)(settings_for(self.quirks, key))
        self._outcomes = OutcomeReports(permit, clock)
        self._ccxt.desk = Desk(self._outcomes, self.quirks, clock, address, timeout_ms / 1000)
        if address is not None:
            self._ccxt.urls["api"] = moved(self._ccxt.urls["api"], address)
            if address.startswith("http://"):
                self._ccxt.timeout_on_exit = 0  # ccxt's pause is for TLS connections to end
        self._key = None if key is None else KeyCheck(exchange_id, self._ask)
        self._loading = asyncio.Lock()
        self._listed_ms: dict[str, int | None] = {}
        self._probes: dict[tuple[str, str, int, int, bool], int | None] = {}
        self._learnt: dict[str, Learnt] = {}
        self._empty = EmptyAnswers(self.quirks.lists)
        self._trades = TradeQuestions(self.quirks, clock)

    async def load_markets(self) -> Markets:
        """Every market, requested from the venue. Raises, unchanged, for an empty answer."""
        # One at a time: ccxt would let a second caller wait for the first one's request, and cancel
        # it.
        async with self._loading, self._visit():
            await self._ccxt.load_markets(True)
        markets = markets_of(self.id, self._ccxt.markets, self._ccxt.timeframes)
        self._remember_listings(markets)
        return markets

    def restore_markets(self, markets: Markets) -> None:
        """Uses markets that were loaded before: no request. Raises MarketsUnavailable for none."""
        if not markets.markets:
            raise MarketsUnavailable(f"{self.id}: there are no stored markets to restore")
        self._ccxt.set_markets([dict(market.raw) for market in markets.markets])
        self._remember_listings(markets)

    async def fetch_bars(
        self, symbol: str, timeframe: Timeframe, since_ms: int, limit: int
    ) -> Answer:
        """At most `limit` bars that open at or after `since_ms`, in one request.

        Never more than the venue's largest page. Markets must be known: MarketsUnavailable else.
        NotServed when they begin before what the venue serves.
        """
        self._require(symbol, timeframe)
        learnt = self._learnt_of(symbol)
        size = max(1, min(limit, self.quirks.page(timeframe.ms)))
        question = Question.of(timeframe, since_ms, size)
        self._refuse_too_old(question)
        named = self.quirks.naming(size, question.to_ms)
        async with self._visit(judging=True) as visit:
            visit.page_size, visit.wants_bars = size, True
            parsed = await self._ccxt.fetch_ohlcv(
                symbol, timeframe.name, learnt.since(since_ms), size, named
            )
            now_ms = self._clock.wall_ms()
            self._ccxt.desk.places.seen(visit, parsed)
            return answer_of(self.id, parsed, visit, self._empty, question, learnt, now_ms)

    async def first_bar(self, symbol: str, timeframe: Timeframe) -> Beginning | None:
        """Where the bars begin; None when the venue has none.

        A handful of requests. A search that the permit interrupts continues where it stopped when
        called again.
        """
        self._require(symbol, timeframe)
        try:
            found = await self._search(symbol, timeframe)
        except NotConfirmed:
            self._forget_search(symbol)
            raise
        self._forget_search(symbol)
        return found

    async def fetch_trades(self, symbol: str, since_ms: int) -> TradePage:
        """The trades from `since_ms` on, in one request; else the newest that the venue returns."""
        self._require_market(symbol)
        self._require_method("fetchTrades", "trades")
        question = self._trades.about(symbol, since_ms)
        async with self._visit(judging=True) as visit:
            parsed = await self._ccxt.fetch_trades(
                symbol, question.since_ms, question.limit, question.params
            )
            now_ms = self._clock.wall_ms()
            return question.read(trades_answer(parsed, visit, self._empty, self.id, now_ms=now_ms))

    async def fetch_tickers(self) -> tuple[Ticker, ...]:
        """The tickers of all known markets, by symbol. Never empty."""
        self._require_method("fetchTickers", "tickers of all markets")
        known = self._known_markets()
        async with self._visit(judging=True) as visit:
            parsed = await self._ccxt.fetch_tickers()
            return tickers_of(self.id, parsed, visit, known=known, now_ms=self._clock.wall_ms())

    async def server_ms(self) -> int:
        """The venue's clock."""
        async with self._visit(judging=True):
            now = await self._ccxt.fetch_time()
            if not isinstance(now, int) or now <= 0:
                raise ExchangeUnavailable(f"{self.id}: the answer holds no server time")
        return now

    def ticks(self, wanted: TickRequest) -> TickSource:
        """Prices by websocket. BadRequest for an exchange or a symbol that has none."""
        for symbol in (*wanted.symbols, *(symbol for symbol, _ in wanted.bars)):
            self._require_market(symbol)
        return self._tick_source(self._ccxt.desk, self._known_markets(), wanted)

    def _tick_source(
        self, desk: Desk, markets: Mapping[str, Any], wanted: TickRequest
    ) -> TickSource:
        # Websockets are not needed by most who import this module.
        from collector.exchanges.ccxt.ticks import CcxtTicks

        return CcxtTicks(self.id, desk, markets, wanted)

    async def close(self) -> None:
        """Ends its connections. The adapter is not used again."""
        await self._ccxt.close()

    async def _search(self, symbol: str, timeframe: Timeframe) -> Beginning | None:
        now_ms = self._clock.wall_ms()

        async def probe(
            rung: Timeframe, since_ms: int, bars: int, *, again: bool = False
        ) -> int | None:
            # Kept until the search ends: with a small budget it may take several runs.
            key = (symbol, rung.name, since_ms, bars, again)
            if key not in self._probes:
                answer = await self.fetch_bars(symbol, rung, since_ms, bars)
                self._probes[key] = first_inside(answer, anywhere=self.quirks.counts_rows)
            return self._probes[key]

        served, from_ms = self._ccxt.timeframes, BEFORE_ALL_MARKETS_MS
        listed = self._listed_ms.get(symbol)
        if self.quirks.oldest_bars is not None:
            # Its daily bars reach further back than its minutes, so no ladder leads to these.
            served = ()
            oldest_ms = timeframe.shift(now_ms, 1 - self.quirks.oldest_bars)
            from_ms, listed = max(oldest_ms, timeframe.floor(listed or 0)), None
        search = FirstBar(probe, lambda rung: self.quirks.page(rung.ms), from_ms, now_ms)
        if self.quirks.counts_rows:
            return await search.of_counted_rows(timeframe, served)
        return await search.found(timeframe, served, listed)

    def _forget_search(self, symbol: str) -> None:
        self._probes = {key: value for key, value in self._probes.items() if key[0] != symbol}

    async def _ask(self, method: str) -> Any:
        """One of ccxt's own methods, without checking the key."""
        async with self._visit(checking_key=False):
            return await getattr(self._ccxt, method)()

    @asynccontextmanager
    async def _visit(
        self, *, judging: bool = False, checking_key: bool = True
    ) -> AsyncIterator[Visit]:
        """Turns every error inside into one of Collector's, and leaves nothing running.

        It begins when the exchange's key, if there is one, is known to be harmless.
        When the answer is judged inside (`judging`), the permit receives that verdict. Nothing is
        awaited between the answer and its verdict, so this delays the report by nothing.
        """
        if checking_key and self._key is not None:
            await self._key.passed()
        visit = Visit(judging=judging)
        try:
            with entered(visit):
                yield visit
            await self._outcomes.judged(visit)
        except asyncio.CancelledError as cancelled:
            await self._outcomes.judged(visit, cancelled)
            raise
        except Exception as error:
            reply = None if visit.last is None else visit.last.reply
            found: Exception | None
            found = visit.denial or sorted_error(error, self.quirks, reply, self._clock)
            await self._outcomes.judged(visit, found)
            if found is error:
                raise
            raise found from error
        finally:
            found = reply = None  # This frame is in the traceback of what was found.
            await visit.end()
            # An answer to a task that was left behind is not judged.
            await self._outcomes.judged(visit)
            denial = visit.denial
            visit.forget()
        if denial is not None:
            raise denial

    def _require(self, symbol: str, timeframe: Timeframe) -> None:
        self._require_market(symbol)
        if timeframe.name not in self._ccxt.timeframes:
            served = ", ".join(self._ccxt.timeframes)
            raise BadRequest(f"{self.id} serves no {timeframe} bars; it serves {served}")

    def _require_method(self, name: str, what: str) -> None:
        if self._ccxt.has.get(name) is not True:
            raise BadRequest(f"{self.id} serves no {what}")

    def _known_markets(self) -> Mapping[str, Any]:
        known: Mapping[str, Any] = self._ccxt.markets
        if not known:
            raise MarketsUnavailable(f"{self.id}: its markets are not known yet")
        return known

    def _require_market(self, symbol: str) -> None:
        known = self._known_markets()
        if symbol not in known:
            raise BadRequest(f"{self.id} has no market {symbol!r}{did_you_mean(symbol, known)}")

    def _learnt_of(self, symbol: str) -> Learnt:
        """Spot and contracts of one venue may page differently."""
        kind = str(self._ccxt.markets[symbol].get("type"))
        exclusive = not self.quirks.since_inclusive if self.quirks.written else None
        return self._learnt.setdefault(kind, Learnt(exclusive))

    def _refuse_too_old(self, question: Question) -> None:
        """The venue would answer with other bars, or refuse, for what it no longer has."""
        oldest, timeframe = self.quirks.oldest_bars, question.timeframe
        if oldest is None:
            return
        oldest_ms = timeframe.shift(self._clock.wall_ms(), 1 - oldest)
        horizon_ms = timeframe.shift(oldest_ms, -HORIZON_MOVES_BARS)
        if question.to_ms <= oldest_ms or question.from_ms < horizon_ms:
            raise NotServed(
                f"{self.id} serves only the latest {oldest} bars of {timeframe}; those before "
                f"{oldest_ms} are not to be had as bars",
                from_ms=oldest_ms,
            )

    def _remember_listings(self, markets: Markets) -> None:
        self._listed_ms = {market.symbol: market.listed_ms for market in markets.markets}


def settings_for(quirks: Quirks, key: Credentials | None = None) -> Mapping[str, Any]:
    """ccxt's settings: its throttle in use, none of its own retries, only the markets needed."""
    options: dict[str, Any] = {"maxRetriesOnFailure": 0}
    if quirks.market_options:
        options["fetchMarkets"] = dict(quirks.market_options)
    if quirks.currency_options:
        options["fetchCurrencies"] = dict(quirks.currency_options)
    login = {"apiKey": key.key, "secret": key.secret, "password": key.password} if key else {}
    return {
        **login,
        "enableRateLimit": True,
        "timeout": DAY_MS,  # Never: the session keeps the time.
        "options": options,
        # They are not used, and a list of markets is tens of megabytes.
        "enableLastHttpResponse": False,
        "enableLastJsonResponse": False,
        "enableLastResponseHeaders": False,
    }
