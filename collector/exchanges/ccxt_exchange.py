"""An exchange through ccxt: the adapter behind `port.Exchange` for every venue ccxt knows."""

from __future__ import annotations

import asyncio
import difflib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.errors import BadRequest, ExchangeUnavailable, MarketsUnavailable
from collector.exchanges.ccxt_addresses import checked_address, moved
from collector.exchanges.ccxt_errors import sorted_error
from collector.exchanges.ccxt_gate import Desk, gated, settings_for
from collector.exchanges.ccxt_key import KeyCheck
from collector.exchanges.ccxt_markets import markets_of
from collector.exchanges.ccxt_page import page_of
from collector.exchanges.ccxt_tickers import tickers_of
from collector.exchanges.ccxt_trades import told_of
from collector.exchanges.ccxt_visit import Visit, entered
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS, first_bar_ms
from collector.exchanges.learnt import Learnt, from_first_row
from collector.exchanges.quirks import quirks_for
from collector.exchanges.trade_questions import TradeQuestions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.clock import Clock
    from collector.exchanges.port import BarPage, Markets, Permit, Ticker, TradePage
    from collector.market.timeframe import Timeframe
    from collector.secrets import Credentials

TIMEOUT_MS = 10_000


class CcxtExchange:
    """One venue, one ccxt instance. Asks the permit before every request, retries nothing.

    Safe to share between the tasks of one event loop. Raises only errors of collector.errors (and
    asyncio.CancelledError); what the permit raises comes out unchanged.
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

        With a `key`, the first request asks what it may do; KeyRefused when that is too much.
        """
        self.id = exchange_id
        self.quirks = quirks_for(exchange_id)
        self._clock = clock
        given = (urls or {}).get(exchange_id)
        address = None if given is None else checked_address(exchange_id, given)
        self._ccxt = gated(exchange_id)(settings_for(self.quirks, key))
        self._ccxt.desk = Desk(permit, self.quirks, clock, address, timeout_ms / 1000)
        if address is not None:
            self._ccxt.urls["api"] = moved(self._ccxt.urls["api"], address)
            if address.startswith("http://"):
                self._ccxt.timeout_on_exit = 0  # ccxt's pause is for TLS connections to end
        self._key = None if key is None else KeyCheck(exchange_id, self._ask)
        self._loading = asyncio.Lock()
        self._listed_ms: dict[str, int | None] = {}
        self._probes: dict[tuple[str, str, int], int | None] = {}
        self._learnt: dict[str, Learnt] = {}
        self._trades = TradeQuestions(self.quirks, clock)

    async def load_markets(self) -> Markets:
        """Every market, asked from the venue. An answer without any changes nothing and raises."""
        # In turn: ccxt would let a second caller wait for the first one's request, and cancel it.
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
    ) -> BarPage:
        """At most `limit` bars that open at or after `since_ms`, in one request.

        Never more than the venue's largest page. Markets must be known: MarketsUnavailable else.
        The page begins later than asked, and ends earlier, where the answer may have been cut.
        """
        self._require(symbol, timeframe)
        learnt = self._learnt_of(symbol)
        size = max(1, min(limit, learnt.page, self.quirks.page(timeframe.ms)))
        end_ms = since_ms + size * timeframe.ms
        self._refuse_too_old(timeframe, end_ms)
        named = {"until": end_ms - 1} if self.quirks.names_end else {}
        async with self._visit() as visit:
            rows = await self._ccxt.fetch_ohlcv(
                symbol, timeframe.name, learnt.since(since_ms), size, named
            )
            page = page_of(
                self.id,
                rows,
                visit,
                since_ms=since_ms,
                limit=size,
                bar_ms=timeframe.ms,
                now_ms=self._clock.wall_ms(),
            )
        if not self.quirks.written:
            now_ms = self._clock.wall_ms() if page.server_ms is None else page.server_ms
            return learnt.read(page, timeframe.ms, now_ms)
        cut = self.quirks.keeps_newest and len(rows) >= self.quirks.largest_page
        return from_first_row(page) if cut else page

    async def earliest_bar_ms(self, symbol: str, timeframe: Timeframe) -> int | None:
        """When the first bar opens; None when the venue has none.

        One request where the venue tells, a handful where it must be searched. A search that the
        permit interrupts goes on, when called again, where it stopped.
        """
        self._require(symbol, timeframe)
        if self.quirks.since_zero_gives_first:
            page = await self.fetch_bars(symbol, timeframe, 0, 1)
            return _first_open(page)
        found = await self._search_first(symbol, timeframe)
        self._probes = {key: value for key, value in self._probes.items() if key[0] != symbol}
        return found

    async def fetch_trades(self, symbol: str, since_ms: int) -> TradePage:
        """The trades from `since_ms` on, in one request; else the newest the venue gives."""
        self._require_market(symbol)
        self._require_method("fetchTrades", "trades")
        question = self._trades.about(symbol, since_ms)
        async with self._visit() as visit:
            parsed = await self._ccxt.fetch_trades(
                symbol, question.since_ms, question.limit, question.params
            )
            return question.read(told_of(parsed, visit, self.id, now_ms=self._clock.wall_ms()))

    async def fetch_tickers(self) -> tuple[Ticker, ...]:
        """The tickers of all known markets, by symbol. Never none."""
        self._require_method("fetchTickers", "tickers of all markets")
        known = self._known_markets()
        async with self._visit() as visit:
            parsed = await self._ccxt.fetch_tickers()
            return tickers_of(self.id, parsed, visit, known=known, now_ms=self._clock.wall_ms())

    async def server_ms(self) -> int:
        """The venue's clock."""
        async with self._visit():
            now = await self._ccxt.fetch_time()
        if not isinstance(now, int) or now <= 0:
            raise ExchangeUnavailable(f"{self.id}: the answer holds no server time")
        return now

    async def close(self) -> None:
        """Ends its connections. The adapter is not used again."""
        await self._ccxt.close()

    async def _search_first(self, symbol: str, timeframe: Timeframe) -> int | None:
        now_ms = self._clock.wall_ms()
        largest = self.quirks.largest_page

        async def probe(rung: Timeframe, since_ms: int) -> int | None:
            # Kept until the search ends: with a small budget it may take several turns.
            key = (symbol, rung.name, since_ms)
            if key not in self._probes:
                self._probes[key] = _first_open(
                    await self.fetch_bars(symbol, rung, since_ms, largest)
                )
            return self._probes[key]

        served, from_ms = self._ccxt.timeframes, BEFORE_ALL_MARKETS_MS
        listed = self._listed_ms.get(symbol)
        if self.quirks.oldest_bars is not None:
            # Its daily bars reach further back than its minutes, so no ladder leads to these.
            served = ()
            oldest_ms = timeframe.floor(now_ms) - (self.quirks.oldest_bars - 1) * timeframe.ms
            from_ms = max(oldest_ms, timeframe.floor(listed or 0))
        elif listed is not None:
            from_ms = listed
            found = await probe(timeframe, timeframe.floor(listed))
            if found is not None:
                return found
        return await first_bar_ms(
            probe,
            timeframe,
            served=served,
            page=lambda rung: self.quirks.page(rung.ms),
            from_ms=from_ms,
            now_ms=now_ms,
        )

    async def _ask(self, method: str) -> Any:
        """One of ccxt's own methods, with no look at the key."""
        async with self._any_visit():
            return await getattr(self._ccxt, method)()

    @asynccontextmanager
    async def _visit(self) -> AsyncIterator[Visit]:
        """A visit with a key that may be used, or with none."""
        if self._key is not None:
            await self._key.passed()
        async with self._any_visit() as visit:
            yield visit

    @asynccontextmanager
    async def _any_visit(self) -> AsyncIterator[Visit]:
        """Whatever happens inside comes out in Collector's words, with nothing left running."""
        visit = Visit()
        try:
            with entered(visit):
                yield visit
        except Exception as error:
            reply = None if visit.last is None else visit.last.reply
            found = visit.denial or sorted_error(error, self.quirks, reply, self._clock)
            if found is error:
                raise
            raise found from error
        finally:
            await visit.end()
        if visit.denial is not None:
            raise visit.denial

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
            near = difflib.get_close_matches(symbol, known, n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise BadRequest(f"{self.id} has no market {symbol!r}{hint}")

    def _learnt_of(self, symbol: str) -> Learnt:
        """Spot and contracts of one venue may page differently."""
        kind = str(self._ccxt.markets[symbol].get("type"))
        exclusive = not self.quirks.since_inclusive if self.quirks.written else None
        return self._learnt.setdefault(kind, Learnt(self.quirks.largest_page, exclusive))

    def _refuse_too_old(self, timeframe: Timeframe, end_ms: int) -> None:
        """What the venue no longer has it would answer with other bars, or with a refusal."""
        oldest = self.quirks.oldest_bars
        if oldest is None:
            return
        border_ms = timeframe.floor(self._clock.wall_ms()) - oldest * timeframe.ms
        if end_ms <= border_ms:
            raise BadRequest(
                f"{self.id} serves only the latest {oldest} bars of {timeframe}; those before "
                f"{border_ms} are not to be had as bars"
            )

    def _remember_listings(self, markets: Markets) -> None:
        self._listed_ms = {market.symbol: market.listed_ms for market in markets.markets}


def _first_open(page: BarPage) -> int | None:
    opens = [row[0] for row in page.rows if row[0] is not None]
    return int(opens[0]) if opens else None
