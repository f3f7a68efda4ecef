"""ccxt with a hook in it: every request calls the permit first, and every answer is reported.

`hooked_class(exchange_id)` is ccxt's own class of an exchange with `RequestHook` in front of it.
All of ccxt's REST requests go through `fetch2`, which awaits `throttle`; those two, and the hooks
that see an answer before ccxt judges it, are all that is overridden.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ccxt.async_support.base.exchange import BaseExchange
from ccxt.base.errors import BadResponse
from ccxt.base.exchange import Exchange as SyncExchange

from collector.errors import RetryLater
from collector.exchanges.ccxt.catalog import ccxt_class
from collector.exchanges.ccxt.contract_volume import bars_in_base, batch_in_base, trade_in_base
from collector.exchanges.ccxt.empty import at
from collector.exchanges.ccxt.errors import ban_rule, sorted_error
from collector.exchanges.ccxt.session import open_session, tls_of
from collector.exchanges.ccxt.trades import TradeDigits
from collector.exchanges.ccxt.unread import Columns, Places, learn, picked, unread
from collector.exchanges.ccxt.visit import Errand, Grant, current_errand, current_visit
from collector.exchanges.port import Call

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.exchanges.ccxt.visit import OutcomeReports, Visit
    from collector.exchanges.quirks import Quirks
    from collector.market.bar_rows import BarRows

_SNIPPET = 120
_LONGEST_ERROR = 1_000
"""An answer that demands a stop is short; a page of bars is not searched for one."""
_LONG_ANSWER = 4 * 2**20
_MOST_VALUES = 3_000_000
"""Measured: 60 MB of `{},` take 1.5 GB when they are parsed."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the hook needs to know. `address` replaces the venue's own hosts.

    `timeout_s` is how long an answer may take from the token on.
    """

    outcomes: OutcomeReports
    quirks: Quirks
    clock: Clock
    address: str | None
    timeout_s: float
    places: Places = field(default_factory=Places)


class RequestHook(BaseExchange):  # type: ignore[misc] # ccxt has no types
    """Comes before an exchange's own class; see `hooked_class`."""

    desk: Desk
    session: Any
    ssl_context: Any

    async def fetch2(
        self,
        path: str,
        api: Any = "public",
        method: str = "GET",
        params: Any = None,
        config: Any = None,
    ) -> Any:
        """One request: a token, an answer reported to the permit, errors as Collector's own."""
        call = self._call(path, api, method, params or {}, config or {})
        visit, outcomes = current_visit(), self.desk.outcomes
        errand = Errand(call, lambda: self._ask(call))
        with visit.running(errand):
            try:
                await outcomes.judged(visit)
                answer = await super().fetch2(path, api, method, params or {}, config or {})
                self._refuse_broken(errand)
            except asyncio.CancelledError as cancelled:
                await outcomes.failed(errand, cancelled)
                raise
            except Exception as error:
                found: Exception | None
                found = sorted_error(error, self.desk.quirks, errand.reply, self.desk.clock)
                if isinstance(found, RetryLater):
                    visit.failure = found
                await outcomes.failed(errand, found)
                if found is error:
                    raise
                raise found from error
            finally:
                found = None  # This frame, with a whole answer, is in its traceback.
            await outcomes.answered(visit, errand)
            return answer

    async def throttle(self, cost: Any = None) -> None:
        """Replaces ccxt's own limiter: registers that a request is coming."""
        errand = current_errand()
        if errand is None:
            raise RuntimeError("ccxt asked for a token outside of any request")
        errand.announce()

    async def _ask(self, call: Call) -> Grant:
        """Calls the permit just before the request leaves."""
        try:
            until = await self.desk.outcomes.permit.before(call)
        except Exception as denial:
            current_visit().denial = denial
            raise
        return Grant(self.desk.clock.monotonic(), until)

    def on_rest_response(self, code: int, *rest: Any) -> Any:
        """Keeps the answer as it came. `rest`: reason, url, method, headers, body, ..."""
        errand = current_errand()
        if errand is not None and errand.reply is not None:
            errand.reply = replace(errand.reply, body=rest[4])
        return super().on_rest_response(code, *rest)

    def parse_json(self, http_response: Any) -> Any:
        """The answer. A page of bars stays text where ccxt does not look at its rows."""
        errand, visit = current_errand(), current_visit()
        if len(http_response) > _LONG_ANSWER:
            values = sum(map(http_response.count, ",[{"))
            if values > _MOST_VALUES:
                raise BadResponse(f"{self.id} answered with {values:,} values")
        path = self.desk.places.of(errand.call.endpoint) if errand and visit.wants_bars else None
        parsed = None
        if path is not None:
            parsed, visit.unread = unread(http_response, path, super().parse_json)
        if parsed is None:
            parsed = super().parse_json(http_response)
        if errand is not None:
            errand.json = parsed
        return parsed

    def parse_ohlcvs(
        self,
        ohlcvs: Any,
        market: Any = None,
        timeframe: str = "1m",
        since: Any = None,
        limit: Any = None,
        tail: Any = False,
    ) -> Any:
        """All rows, also those ccxt would drop: one without a time has to reach quarantine."""
        visit = current_visit()
        if visit.unread is not None:
            visit.raw_rows = ohlcvs
            visit.unread.bars = self._picked(visit, ohlcvs, market)
            if visit.unread.bars is not None:
                return ohlcvs
            ohlcvs = self._ordinary(visit)
        visit.raw_rows = ohlcvs
        rows = super().parse_ohlcvs(of_one_length(ohlcvs), market, timeframe)
        visit.parsed = bars_in_base(rows, market) if self._counts(market) else rows
        return visit.parsed

    def _counts(self, market: Any) -> bool:
        """Whether the volumes of a market are counts of contracts."""
        return bool(self.desk.quirks.counts_contracts and market and market.get("contract"))

    def parse_trades(self, trades: Any, *rest: Any, **more: Any) -> Any:
        """Keeps the trades as they came: their number shows whether the answer was full."""
        current_visit().raw_rows = trades
        parsed = super().parse_trades(trades, *rest, **more)
        for each in parsed:
            market = self.markets.get(each["symbol"]) or {}
            each["amount"] = trade_in_base(each["amount"], each["price"], market)
        return parsed

    def insert_missing_candles(self, candles: Any, *_: Any) -> Any:
        """No bars that the venue did not send: ccxt would make up those without trades."""
        return candles

    def convert_trading_view_to_ohlcv(self, ohlcvs: Any, *names: Any, **more: Any) -> Any:
        """A page that comes by columns: with one of another length the values are not in line."""
        current_visit().raw_columns = ohlcvs
        columns = [each for each in (ohlcvs or {}).values() if isinstance(each, list)]
        if len(set(map(len, columns))) > 1:
            raise BadResponse(f"{self.id} answered with columns of different lengths")
        return super().convert_trading_view_to_ohlcv(ohlcvs, *names, **more)

    def _picked(self, visit: Visit, page: Any, market: Any) -> BarRows | None:
        """The bars of a page whose numbers are a table; None when ccxt has to look at its rows."""
        if page is not visit.unread:
            self.desk.places.refuse(visit)
            raise BadResponse(f"{self.id}: the rows of a page were changed before they were read")
        columns = self._columns(page[0], market) if self._parses_rows_alone() else None
        if columns is None:
            return None
        bars = picked(page, columns, partial(self.parse_ohlcv, market=market))
        return batch_in_base(bars, market) if bars and self._counts(market) else bars

    def _ordinary(self, visit: Visit) -> Any:
        """The rows of a page that was to be read at once, parsed the ordinary way."""
        page, visit.unread = visit.unread, None
        json = super().parse_json(page.text)
        if visit.last is not None:
            visit.last.json = json
        return at(json, page.path)

    def _columns(self, row: Any, market: Any) -> Columns | None:
        """Where the columns of such rows are; None when ccxt does more than pick cells."""
        kind = (market or {}).get("type"), (market or {}).get("inverse"), type(row)
        known: dict[Any, Columns | None] = self.__dict__.setdefault("learnt_columns", {})
        if kind not in known:
            known[kind] = learn(row, partial(self.parse_ohlcv, market=market))
        return known[kind]

    def _parses_rows_alone(self) -> bool:
        """Whether the exchange uses ccxt's own loop over a page."""
        own = super().parse_ohlcvs
        return getattr(own, "__func__", None) is SyncExchange.parse_ohlcvs

    def parse_ohlcv(self, ohlcv: Any, market: Any = None) -> Any:
        """The six columns and the turnover, None where the venue sends none."""
        column = self.desk.quirks.turnover.get(_kind(market))
        turnover = None if column is None else self.safe_number(ohlcv, column)
        return [*super().parse_ohlcv(ohlcv, market), turnover]

    def check_required_credentials(self, error: bool = True) -> Any:
        """A key does not change requests: whatever ccxt would add for one is left out."""
        return super().check_required_credentials() if error else False

    async def fetch_markets(self, params: Any = None) -> Any:
        """Every part of the list or none: without one of them, markets would vanish."""
        markets = await super().fetch_markets(params or {})
        failure = current_visit().failure
        if failure is not None:
            raise failure
        return markets

    def set_markets(self, markets: Any, currencies: Any = None) -> Any:
        """An empty list never replaces known markets."""
        if not markets:
            raise BadResponse(f"{self.id} listed no markets at all")
        return super().set_markets(markets, currencies)

    def open(self, lazy: bool = False) -> None:
        if self.ssl_context is None:
            self.ssl_context = tls_of(self.desk.address, self.cafile)
        # ccxt finds its event loop, and then must not make a session of its own.
        self.own_session = False
        super().open(lazy)
        if self.session is None:
            self.session = open_session(
                self.ssl_context, self.desk.address, self.desk.clock, self.desk.timeout_s
            )
        self.own_session = True  # so that close() ends it

    def _call(self, path: str, api: Any, method: str, params: Any, config: Any) -> Call:
        quirks = self.desk.quirks
        if quirks.cost_ms is not None:
            cost = self.calculate_rate_limiter_cost(api, method, path, params, config)
            return Call(quirks.exchange_id, path, quirks.weight_of_cost(cost))
        endpoint = quirks.endpoint(path, params)
        limit = params.get("limit") if isinstance(params, dict) else None
        size = limit if isinstance(limit, int) else current_visit().page_size
        return Call(quirks.exchange_id, endpoint, quirks.weight(endpoint, size))

    def _refuse_broken(self, errand: Errand) -> None:
        """Raises when the answer is not what it claims to be; ccxt takes all of these for data."""
        reply, endpoint = errand.reply, errand.call.endpoint
        if reply is None or not 200 <= reply.status < 300:
            status = "nothing" if reply is None else reply.status
            raise BadResponse(f"{self.id} {endpoint} answered {status}")
        if len(reply.body) <= _LONGEST_ERROR and ban_rule(self.desk.quirks, reply) is not None:
            raise BadResponse(f"{self.id} {endpoint} demands a stop: {reply.body[:_SNIPPET]!r}")
        if errand.json is None:
            raise BadResponse(
                f"{self.id} {endpoint} answered with what is not JSON: {reply.body[:_SNIPPET]!r}"
            )
        path = self.desk.quirks.lists.get(endpoint)
        if path is not None and not isinstance(at(errand.json, path), list):
            raise BadResponse(
                f"{self.id} {endpoint} answered without its list: {reply.body[:_SNIPPET]!r}"
            )


@cache
def hooked_class(exchange_id: str) -> Any:
    """ccxt's class of an exchange with the hook in front of it."""
    return type(f"Gated_{exchange_id}", (RequestHook, TradeDigits, ccxt_class(exchange_id)), {})


def _kind(market: Any) -> str:
    """What the columns of a market's bars depend on."""
    if not market or not market.get("contract"):
        return "spot"
    return "inverse" if market.get("inverse") else "linear"


def of_one_length(rows: Any) -> Any:
    """Rows of another length than most keep their time only: their columns are not in place."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return rows
    lengths = Counter(map(len, rows)).most_common(2)
    if len(lengths) < 2:
        return rows
    (usual, often), (_, next_often) = lengths
    return [row if len(row) == usual and often > next_often else row[:1] for row in rows]
