"""What Collector needs from an exchange, and what an exchange needs from Collector.

An adapter translates; it never waits, retries or counts. Before it lets a request out it asks its
`Permit`, and after every answer it tells the permit what came back, so that nothing can reach a
venue without a token and no hint of a ban is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.market.timeframe import Timeframe
    from collector.market.trade import Trade

Health = Literal["good", "bad", "unknown"]
"""What an answer says of the venue: bad for a time-out, a 5xx, a dropped connection or a body that
cannot be understood; unknown when it was told to stop, refused a mistake of ours, or was not
waited for."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request about to leave: `weight` is what the venue itself counts for it.

    `endpoint` is the venue's path with its placeholders unfilled, so that there are few of them.
    """

    exchange_id: str
    endpoint: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, before anyone judged it. Header names are in lower case.

    `status` 0: nothing came back at all. `seconds` counts from the token to the end.
    """

    call: Call
    status: int
    headers: Mapping[str, str]
    seconds: float
    health: Health = "unknown"


class Permit(Protocol):
    """Stands between an adapter and the network.

    Every `before` that returns is followed by exactly one `after`, which ends before the adapter's
    method does, even when that method fails or is cancelled. At most one request leaves between.
    When it could not leave in time, `before` is asked once more for the same call, and what it
    returned first counts for nothing.
    """

    async def before(self, call: Call) -> float:
        """Returns when the request may leave now, with the last moment (monotonic) at which it may.

        Raises RateLimited when it may not. Whatever it raises comes out of the adapter's method
        unchanged.
        """

    async def after(self, answer: Answer) -> None:
        """Hears every answer, the bad ones first of all."""


@dataclass(frozen=True, slots=True)
class Market:
    """One instrument as the venue lists it."""

    symbol: str
    venue_id: str
    base: str
    quote: str
    kind: str = "spot"
    active: bool = True
    listed_ms: int | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Markets:
    """All instruments of a venue, and the timeframes it serves."""

    exchange_id: str
    markets: tuple[Market, ...]
    timeframes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BarPage:
    """A well-formed answer to one request for bars: rows as the venue sent them, oldest first.

    Each row is (ts_ms, open, high, low, close, volume, turnover or None). An empty page is a
    venue's own statement that it has no bars there; a broken answer never becomes a page. A value
    the venue left out is None, also a time; rows without a time come last. `server_ms` is when the
    venue's server says it answered, to the second and never later than that.
    """

    rows: tuple[tuple[float | None, ...], ...]
    asked_from_ms: int
    asked_limit: int
    server_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TradePage:
    """An answer to one request for trades, oldest first, and the stretch it settles.

    Every trade of `[from_ms, to_ms)` is in it. What was traded between the moment asked for and a
    later `from_ms` the venue no longer tells. It may hold trades behind `to_ms`, too, which the
    next page repeats. `is_latest`: `to_ms` is as close to the present as can be believed. A page
    that is not the latest and settles nothing has a sequel: the same has to be asked for again.
    """

    trades: tuple[Trade, ...]
    from_ms: int
    to_ms: int
    is_latest: bool


@dataclass(frozen=True, slots=True)
class Ticker:
    """A market's last price and best offers; `volume` is the last day's, in the base currency.

    What the venue left out is None. `ts` is the venue's own moment, else when it answered.
    """

    symbol: str
    last: float | None
    bid: float | None
    ask: float | None
    volume: float | None
    ts: int


class Exchange(Protocol):
    """One venue. Implementations: ccxt_exchange, simulated, fxcm.

    Methods raise what their permit raises, ExchangeBlocked, ExchangeUnavailable or BadRequest.
    """

    id: str

    async def load_markets(self) -> Markets:
        """Every market, asked from the venue. An answer without any is ExchangeUnavailable."""

    def restore_markets(self, markets: Markets) -> None:
        """Uses markets that were loaded before instead of asking again. Sends nothing."""

    async def fetch_bars(
        self, symbol: str, timeframe: Timeframe, since_ms: int, limit: int
    ) -> BarPage:
        """At most `limit` bars that open at or after `since_ms`, in one request.

        Raises MarketsUnavailable when markets were neither loaded nor restored.
        """

    async def earliest_bar_ms(self, symbol: str, timeframe: Timeframe) -> int | None:
        """When the first bar opens; None when the venue has none."""

    async def fetch_trades(self, symbol: str, since_ms: int) -> TradePage:
        """The trades from `since_ms` on, as many as one request gives.

        Raises MarketsUnavailable when markets were neither loaded nor restored.
        """

    async def fetch_tickers(self) -> tuple[Ticker, ...]:
        """The tickers of all known markets, by symbol. Never none."""

    async def server_ms(self) -> int:
        """The venue's clock."""

    async def close(self) -> None:
        """Ends its connections."""
