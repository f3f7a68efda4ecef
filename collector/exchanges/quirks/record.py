"""The shape of a venue's quirks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.quirks.spacing import Spacing


_BARS = ("kline", "candle", "ohlc")
"""What endpoints of bars are called."""
_COUNT = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class VenueWindow:
    """A limit as the venue states it: at most `limit` of `unit` in any `period_ms`."""

    unit: Literal["requests", "weight"]
    limit: int
    period_ms: int
    priority_reserve: int = 0
    """How much of it is kept for priority callers."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a venue counts for one request to an endpoint.

    `tiers` are (first limit, weight), smallest first, for endpoints that charge by the size of the
    page; a request that names no limit is charged `weight`. `rows` is for those that charge 1 more
    for every so many rows.
    """

    weight: int
    tiers: tuple[tuple[int, int], ...] = ()
    rows: int | None = None

    def of(self, limit: int | None) -> int:
        if limit is None:
            return self.weight
        if self.rows is not None:
            return self.weight + math.ceil(limit / self.rows)
        reached = [weight for first, weight in self.tiers if limit >= first]
        return reached[-1] if reached else self.weight


@dataclass(frozen=True, slots=True)
class BanRule:
    """An answer that means everyone must stop, and for how long when it names no duration.

    `phrase` is in the body, in lower case and whatever its spaces; empty matches any body. A rule
    without a status holds for every status: some venues demand a stop with a 200.
    """

    status: int | None
    phrase: str
    wait_ms: int


@dataclass(frozen=True, slots=True)
class WindowedTrades:
    """Names of a window of trades that come newest first: of a full one its oldest are missing.

    `begin` and `end` are in seconds; `page` counts from 1. Older ones than `kept_ms` are refused.
    """

    begin: str
    end: str
    page: str
    kept_ms: int


@dataclass(frozen=True, slots=True)
class Quirks:
    """How one venue counts, pages and bans. Data only; nothing here acts."""

    exchange_id: str
    requests: VenueWindow
    """How many requests the venue allows."""
    windows: tuple[VenueWindow, ...] = ()
    """Its further limits."""
    spacing: Spacing | None = None
    """How far apart requests for one series are, where that matters."""
    reserve_threshold: float | None = None
    """The load from which on reserves are kept; None for the usual one."""
    weights: Mapping[str, Cost] = field(default_factory=dict)
    """By endpoint, in the venue's own units. Anything else weighs 1."""
    asks_by: str | None = None
    """The field that names the resource, where one endpoint answers everything. `weights` and
    `lists` then name both, as in `info candleSnapshot`; others weigh as `info`.
    """
    usage_headers: Mapping[str, VenueWindow] = field(default_factory=dict)
    """Headers (lower case) in which the venue reports what it has counted, and in which window."""
    remaining_headers: Mapping[str, VenueWindow] = field(default_factory=dict)
    """The same for headers that report what is left."""
    cost_ms: float | None = None
    """Without a record: how long ccxt waits after a request of cost 1. A request then weighs the
    milliseconds that ccxt would wait after it."""

    largest_page: int = 100
    """More bars than this in one request and the venue cuts or refuses."""
    default_page: int = 100
    """The default page size: the most bars for the budget."""
    size_name: str | None = None
    """The venue's own name of the page size, where ccxt would request fewer bars."""
    longest_window_ms: int | None = None
    """A request may not span more than this, whatever its count of bars."""
    names_end: bool = False
    """Whether a request has to name the end of its window: an open one returns the newest bars."""
    newest_first: bool = False
    """The order at the source. An answer's rows are oldest first in any case."""
    since_inclusive: bool = True
    """Whether a bar that opens exactly at `since` is sent."""
    sends_running_bar: bool = True
    """Whether the last bar may still change."""
    oldest_bars: int | None = None
    """Only this many of the latest bars are served at all."""
    counts_rows: bool = False
    """Whether rows are counted from `since` on, however far apart they are: a question may then
    span more slots than a page has rows, and one from 1970 returns the market's first bars.
    """
    trades_below_zero: bool = False
    """Whether a price may be zero or less. Elsewhere such a bar is refused."""
    turnover: Mapping[str, int | str] = field(default_factory=dict)
    """The raw row's column of turnover in quote currency, by kind: spot, linear, inverse."""
    counts_contracts: bool = False
    """Whether the volume of a contract's bar is a number of contracts. Else: of base currency."""
    trades_page: int | None = None
    """How many trades from a moment on one request gives; None: it gives only its newest."""
    trades_since: str | None = None
    """The venue's own name of that moment, where ccxt would name an end as well, or round it."""
    trades_since_ns: bool = False
    """Whether that name takes nanoseconds, and gives the trades after them. Else milliseconds."""
    windowed_trades: WindowedTrades | None = None
    """How to name a window instead, where the newest trades come first."""
    trades_of_spot_only: bool = False
    """Whether all this is so for spot markets only; of contracts come the newest."""
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Where an endpoint's list is in its answer. An answer without it is broken."""

    bans: tuple[BanRule, ...] = ()
    banned_until: str | None = None
    """A pattern whose first group is the epoch ms at which a ban ends, found in the body."""

    refusals: tuple[str, ...] = ()
    """Phrases (lower case) of permanent refusals, whatever their status."""

    market_options: Mapping[str, Any] = field(default_factory=dict)
    """ccxt's own options of loading markets, such as of which types; the rest is left to it."""
    currency_options: Mapping[str, Any] = field(default_factory=dict)
    """The same for the currencies that it loads before them."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """The exchange that has the venue's other markets, by their kind: spot, linear, inverse."""
    written: bool = True
    """Whether there is a record of this venue. If not, answers are read with more caution."""

    def endpoint(self, path: str, params: Any) -> str:
        """What a request is counted as."""
        named = params.get(self.asks_by) if self.asks_by and isinstance(params, dict) else None
        return path if named is None else f"{path} {named}"

    def weight(self, endpoint: str, limit: int | None) -> int:
        """What the venue counts for a request of `limit` rows from `endpoint`."""
        cost = self.weights.get(endpoint) or self.weights.get(endpoint.partition(" ")[0])
        return 1 if cost is None else cost.of(limit)

    def weight_of_bars(self, limit: int) -> int:
        """What the venue counts for a page of `limit` bars, at most, as far as it is on record."""
        named = (name for name in self.weights if any(word in name.lower() for word in _BARS))
        return max((self.weight(name, limit) for name in named), default=1)

    def weight_of_cost(self, cost: float) -> int:
        """What a request weighs that ccxt charges `cost` for, where `cost_ms` is given."""
        most = min(window.limit for window in self.windows if window.unit == "weight")
        return max(1, min(most, math.ceil(cost * (self.cost_ms or 0))))

    def page(self, bar_ms: int) -> int:
        """The most bars of `bar_ms` each that one request may ask for."""
        if self.longest_window_ms is None:
            return self.largest_page
        return max(1, min(self.largest_page, self.longest_window_ms // bar_ms))

    def naming(self, size: int, end_ms: int) -> dict[str, int]:
        """What a request for `size` bars before `end_ms` needs beside ccxt's own parameters."""
        sized = {} if self.size_name is None else {self.size_name: size}
        return {**sized, "until": end_ms - 1} if self.names_end else sized

    def trades_from(self, since_ms: int) -> dict[str, int]:
        """The start of a request for trades, where the venue's own name is used."""
        if self.trades_since is None:
            return {}
        return {self.trades_since: since_ms * 1_000_000 - 1 if self.trades_since_ns else since_ms}

    def trades_at_once(self, symbol: str) -> int | None:
        """How many trades of a market from a moment on one request gives; None: its newest."""
        is_contract = ":" in symbol
        return None if is_contract and self.trades_of_spot_only else self.trades_page

    def counted(self, headers: Mapping[str, str]) -> list[tuple[VenueWindow, int]]:
        """What the venue has counted by an answer's headers, by window; absurd numbers left out."""
        used = [(window, headers.get(name, "")) for name, window in self.usage_headers.items()]
        left = [(window, headers.get(name, "")) for name, window in self.remaining_headers.items()]
        return [(window, int(text)) for window, text in used if _COUNT.fullmatch(text)] + [
            (window, max(0, window.limit - int(text)))
            for window, text in left
            if _COUNT.fullmatch(text)
        ]
