"""ccxt with a gate in it: every request asks the permit first, and every answer is told.

`gated(exchange_id)` is ccxt's own class of an exchange with `Gate` in front of it. All of ccxt's
REST requests go through `fetch2`, which awaits `throttle`; those two, and the hooks that see an
answer before ccxt judges it, are all that is overridden.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ccxt.async_support.base.exchange import BaseExchange
from ccxt.base.errors import BadResponse
from ccxt.base.exchange import Exchange as SyncExchange

from collector.errors import ExchangeUnavailable, RetryLater
from collector.exchanges.ccxt_catalog import ccxt_class
from collector.exchanges.ccxt_columns import Columns, decode, learn
from collector.exchanges.ccxt_errors import sorted_error
from collector.exchanges.ccxt_session import open_session, tls_context
from collector.exchanges.ccxt_visit import Errand, Grant, current_errand, current_visit
from collector.exchanges.port import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.exchanges.port import Health, Permit
    from collector.exchanges.quirks import Quirks
    from collector.secrets import Credentials

_SNIPPET = 120
_NEVER_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Desk:
    """What a gate needs to know. `address` replaces the venue's own hosts.

    `timeout_s` is how long an answer may take from the token on.
    """

    permit: Permit
    quirks: Quirks
    clock: Clock
    address: str | None
    timeout_s: float


class Gate(BaseExchange):  # type: ignore[misc] # ccxt has no types
    """Stands before an exchange's own class; see `gated`."""

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
        """One request: a token, an answer told to the permit, an error in Collector's words."""
        call = self._call(path, params)
        errand = Errand(call, lambda: self._ask(call))
        with current_visit().running(errand):
            try:
                answer = await super().fetch2(path, api, method, params or {}, config or {})
                self._refuse_broken(errand)
            except asyncio.CancelledError:
                # The cancellation has to come out, whatever the permit makes of the news.
                with suppress(Exception):
                    await self._tell(errand, "unknown")
                raise
            except Exception as error:
                found = sorted_error(error, self.desk.quirks, errand.reply, self.desk.clock)
                failed = isinstance(found, ExchangeUnavailable)
                if isinstance(found, RetryLater):
                    current_visit().failure = found
                await self._tell(errand, "bad" if failed else "unknown")
                if found is error:
                    raise
                raise found from error
            await self._tell(errand, "good")
            return answer

    async def throttle(self, cost: Any = None) -> None:
        """Instead of ccxt's own limiter: lets the session know that a request is coming."""
        errand = current_errand()
        if errand is None:
            raise RuntimeError("ccxt asked for a token outside of any request")
        errand.announce()

    async def _ask(self, call: Call) -> Grant:
        """Asks the permit, in the moment before the request leaves."""
        try:
            until = await self.desk.permit.before(call)
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
        parsed = super().parse_json(http_response)
        errand = current_errand()
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
        current_visit().raw_rows = ohlcvs
        return self._decoded(ohlcvs, market) or super().parse_ohlcvs(
            _of_one_length(ohlcvs), market, timeframe
        )

    def parse_trades(self, trades: Any, *rest: Any, **more: Any) -> Any:
        """Keeps the trades as they came: how many there were tells whether the answer was full."""
        current_visit().raw_rows = trades
        return super().parse_trades(trades, *rest, **more)

    def convert_trading_view_to_ohlcv(self, ohlcvs: Any, *names: Any, **more: Any) -> Any:
        """A page that comes by columns: with one of another length the values are not in line."""
        columns = [each for each in (ohlcvs or {}).values() if isinstance(each, list)]
        if len(set(map(len, columns))) > 1:
            raise BadResponse(f"{self.id} answered with columns of different lengths")
        return super().convert_trading_view_to_ohlcv(ohlcvs, *names, **more)

    def _decoded(self, rows: Any, market: Any) -> Any:
        """The page by columns; None when ccxt has to look at every row."""
        if not isinstance(rows, list) or not rows or not self._parses_rows_alone():
            return None

        def parse(row: Any) -> Any:
            return self.parse_ohlcv(row, market)

        kind = (market or {}).get("type"), (market or {}).get("inverse"), type(rows[0])
        known: dict[Any, Columns | None] = self.__dict__.setdefault("learnt_columns", {})
        if kind not in known:
            known[kind] = learn(rows[0], parse)
        columns = known[kind]
        return None if columns is None else decode(rows, columns, parse)

    def _parses_rows_alone(self) -> bool:
        """Whether the exchange leaves ccxt's way of going through a page as it is."""
        own = super().parse_ohlcvs
        return getattr(own, "__func__", None) is SyncExchange.parse_ohlcvs

    def parse_ohlcv(self, ohlcv: Any, market: Any = None) -> Any:
        """The six columns and the turnover, None where the venue sends none."""
        column = self.desk.quirks.turnover.get(_kind(market))
        turnover = None if column is None else self.safe_number(ohlcv, column)
        return [*super().parse_ohlcv(ohlcv, market), turnover]

    def check_required_credentials(self, error: bool = True) -> Any:
        """A key changes nothing in what is asked: whatever ccxt would add for one it leaves out."""
        return super().check_required_credentials() if error else False

    async def fetch_markets(self, params: Any = None) -> Any:
        """Every part of the list or none: where ccxt makes do without one, markets would vanish."""
        markets = await super().fetch_markets(params or {})
        failure = current_visit().failure
        if failure is not None:
            raise failure
        return markets

    def set_markets(self, markets: Any, currencies: Any = None) -> Any:
        """Zero markets never replace known ones."""
        if not markets:
            raise BadResponse(f"{self.id} listed no markets at all")
        return super().set_markets(markets, currencies)

    def open(self, lazy: bool = False) -> None:
        if self.ssl_context is None:
            self.ssl_context = tls_context(self.cafile)
        # ccxt finds its event loop, and then must not make a session of its own.
        self.own_session = False
        super().open(lazy)
        if self.session is None:
            self.session = open_session(
                self.ssl_context, self.desk.address, self.desk.clock, self.desk.timeout_s
            )
        self.own_session = True  # so that close() ends it

    def _call(self, path: str, params: Any) -> Call:
        limit = params.get("limit") if isinstance(params, dict) else None
        weight = self.desk.quirks.weight(path, limit if isinstance(limit, int) else None)
        return Call(self.desk.quirks.exchange_id, path, weight)

    async def _tell(self, errand: Errand, health: Health) -> None:
        """Tells the permit, to the end: a cancellation waits for it."""
        if errand.grant is None:
            return
        answer = errand.answer(self.desk.clock.monotonic(), health)
        telling = asyncio.ensure_future(self.desk.permit.after(answer))
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            await asyncio.gather(telling, return_exceptions=True)
            raise

    def _refuse_broken(self, errand: Errand) -> None:
        """Raises when the answer is not what it claims to be; ccxt takes all of these for data."""
        reply, endpoint = errand.reply, errand.call.endpoint
        if reply is None or not 200 <= reply.status < 300:
            status = "nothing" if reply is None else reply.status
            raise BadResponse(f"{self.id} {endpoint} answered {status}")
        if errand.json is None:
            raise BadResponse(
                f"{self.id} {endpoint} answered with what is not JSON: {reply.body[:_SNIPPET]!r}"
            )
        path = self.desk.quirks.lists.get(endpoint)
        if path is not None and not isinstance(_at(errand.json, path), list):
            raise BadResponse(
                f"{self.id} {endpoint} answered without its list: {reply.body[:_SNIPPET]!r}"
            )


@cache
def gated(exchange_id: str) -> Any:
    """ccxt's class of an exchange with the gate in front of it."""
    return type(f"Gated_{exchange_id}", (Gate, ccxt_class(exchange_id)), {})


def _at(json: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        json = json.get(key) if isinstance(json, dict) else None
    return json


def _of_one_length(rows: Any) -> Any:
    """Rows of another length than most keep their time only: their columns are not in place."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return rows
    lengths = Counter(map(len, rows)).most_common(2)
    if len(lengths) < 2:
        return rows
    (usual, often), (_, next_often) = lengths
    return [row if len(row) == usual and often > next_often else row[:1] for row in rows]


def _kind(market: Any) -> str:
    """What the columns of a market's bars depend on."""
    if not market or not market.get("contract"):
        return "spot"
    return "inverse" if market.get("inverse") else "linear"


def settings_for(quirks: Quirks, key: Credentials | None = None) -> Mapping[str, Any]:
    """ccxt's settings: its throttle in use, none of its own retries, only the markets needed."""
    options: dict[str, Any] = {"maxRetriesOnFailure": 0}
    if quirks.market_options:
        options["fetchMarkets"] = dict(quirks.market_options)
    login = {"apiKey": key.key, "secret": key.secret, "password": key.password} if key else {}
    return {
        **login,
        "enableRateLimit": True,
        "timeout": _NEVER_MS,  # the session keeps the time
        "options": options,
        # Nobody reads them, and a list of markets is tens of megabytes.
        "enableLastHttpResponse": False,
        "enableLastJsonResponse": False,
        "enableLastResponseHeaders": False,
    }
