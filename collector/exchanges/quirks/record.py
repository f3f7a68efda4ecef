"""The shape of a venue's quirks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class VenueWindow:
    """A limit as the venue states it: at most `limit` of `unit` in any `period_ms`."""

    unit: Literal["requests", "weight"]
    limit: int
    period_ms: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a venue counts for one request to an endpoint.

    `tiers` are (first limit, weight), smallest first, for endpoints that charge by the size of the
    page; a request that names no limit is charged `weight`.
    """

    weight: int
    tiers: tuple[tuple[int, int], ...] = ()

    def of(self, limit: int | None) -> int:
        if limit is None:
            return self.weight
        reached = [weight for first, weight in self.tiers if limit >= first]
        return reached[-1] if reached else self.weight


@dataclass(frozen=True, slots=True)
class BanRule:
    """An answer that means everyone must stop, and for how long when it does not say.

    `phrase` stands in the body, in lower case; empty matches any body.
    """

    status: int
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
    weights: Mapping[str, Cost] = field(default_factory=dict)
    """By endpoint, in the venue's own units. Anything else weighs 1."""
    usage_headers: Mapping[str, VenueWindow] = field(default_factory=dict)
    """Headers (lower case) in which the venue says what it has counted, and in which window."""
    remaining_headers: Mapping[str, VenueWindow] = field(default_factory=dict)
    """The same for headers that say what is left."""

    largest_page: int = 100
    """More bars than this in one request and the venue cuts or refuses."""
    default_page: int = 100
    """What to ask for when nobody says: the most bars for the budget."""
    longest_window_ms: int | None = None
    """A request may not span more than this, whatever its count of bars."""
    names_end: bool = False
    """Whether a request has to say where its window ends: of an open one the newest bars come."""
    newest_first: bool = False
    """The order at the source. A BarPage is oldest first whatever this says."""
    since_inclusive: bool = True
    """Whether a bar that opens exactly at `since` is sent."""
    sends_running_bar: bool = True
    """Whether the last bar may still change."""
    oldest_bars: int | None = None
    """Only this many of the latest bars are served at all."""
    keeps_newest: bool = False
    """Whether a full answer has lost its oldest rows: it speaks from its first row on."""
    since_zero_gives_first: bool = False
    """Whether asking from 1970 answers with the market's first bars."""
    turnover: Mapping[str, int | str] = field(default_factory=dict)
    """The raw row's column of turnover in quote currency, by kind: spot, linear, inverse."""
    trades_page: int | None = None
    """How many trades from a moment on one request gives; None: it gives only its newest."""
    trades_since: str | None = None
    """The venue's own name of that moment, where ccxt would name an end as well."""
    windowed_trades: WindowedTrades | None = None
    """How to name a window instead, where the newest trades come first."""
    trades_of_spot_only: bool = False
    """Whether all this is so for spot markets only; of contracts come the newest."""
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Where an endpoint's list stands in its answer. An answer without it is broken."""

    bans: tuple[BanRule, ...] = ()
    banned_until: str | None = None
    """A pattern whose first group is the epoch ms at which a ban ends, found in the body."""

    refusals: tuple[str, ...] = ()
    """Phrases (lower case) of answers that stay as they are, whatever status they come with."""

    market_options: Mapping[str, Any] = field(default_factory=dict)
    """ccxt's own options of loading markets, such as of which types; the rest is left to it."""
    written: bool = True
    """Whether somebody wrote this down. If not, answers are read with more caution."""

    def weight(self, endpoint: str, limit: int | None) -> int:
        """What the venue counts for a request that asks `endpoint` for `limit` rows."""
        cost = self.weights.get(endpoint)
        return 1 if cost is None else cost.of(limit)

    def page(self, bar_ms: int) -> int:
        """The most bars of `bar_ms` each that one request may ask for."""
        if self.longest_window_ms is None:
            return self.largest_page
        return max(1, min(self.largest_page, self.longest_window_ms // bar_ms))

    def trades_at_once(self, symbol: str) -> int | None:
        """How many trades of a market from a moment on one request gives; None: its newest."""
        is_contract = ":" in symbol
        return None if is_contract and self.trades_of_spot_only else self.trades_page

    def counted(self, headers: Mapping[str, str]) -> list[tuple[VenueWindow, int]]:
        """What an answer's headers say the venue has counted, by window."""
        used = [(window, headers.get(name, "")) for name, window in self.usage_headers.items()]
        left = [(window, headers.get(name, "")) for name, window in self.remaining_headers.items()]
        return [(window, int(text)) for window, text in used if text.isdigit()] + [
            (window, max(0, window.limit - int(text))) for window, text in left if text.isdigit()
        ]
