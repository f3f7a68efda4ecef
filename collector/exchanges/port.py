"""What Collector needs from an exchange, and what an exchange needs from Collector.

An adapter translates; it never waits, retries or counts. Before it sends a request it calls its
`Permit`, and after every answer it reports the result to the permit, so that nothing reaches a
venue without a token and no sign of a ban is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.first_bar import Beginning
    from collector.market import answer
    from collector.market.timeframe import Timeframe
    from collector.market.trade import Trade

Health = Literal["good", "bad", "unknown"]
"""What an answer shows about the venue: bad for a time-out, a 5xx, a dropped connection or an
unreadable body; unknown when the venue demanded a stop, refused an error of ours, or the answer was
not waited for.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One request about to leave: `weight` is what the venue itself counts for it.

    `endpoint` is the venue's path with its placeholders unfilled, so that there are few of them.
    `key` names the series, as `spacing_key` does, where the venue's requests are spaced by it.
    """

    exchange_id: str
    endpoint: str
    weight: int = 1
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, before it is interpreted."""

    call: Call
    outcome: str
    """One word of few, for metrics: `2xx` or `4xx` of HTTP, `ok` or the kind of a failure
    elsewhere, `none` when nothing came back at all."""
    seconds: float
    """From the token to the end."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What the venue reports beside its answer, names in lower case."""
    health: Health = "unknown"
    error: Exception | None = None
    """The adapter's verdict; None for a good answer."""
    arrived_at: float | None = None
    """When the request had arrived at the latest, on our monotonic clock: when its answer or a
    failure came. None: the answer was not waited for, and the request may still arrive."""
    is_timed: bool = False
    """Whether `arrived_at` is when the first bytes of an answer were here, so that the exchange's
    latency can be learned from it. The moment of a refused connection says nothing about it."""


class Permit(Protocol):
    """The gate between an adapter and the network.

    Every `before` that returns is followed by exactly one `after`, which ends before the adapter's
    method does, even when that method fails or is cancelled. At most one request leaves in between.
    When it could not leave in time, `before` is called once more for the same call, and its first
    result is void.
    """

    async def before(self, call: Call) -> float:
        """Returns when the request may leave now, with the last moment (monotonic) at which it may.

        Raises RateLimited when it may not. The adapter's method raises the same error unchanged.
        """

    async def after(self, answer: Answer) -> None:
        """Receives every answer, good or bad."""


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
class TradePage:
    """An answer to one request for trades, oldest first, and the range it covers.

    Every trade of `[from_ms, to_ms)` is in it. When `from_ms` is later than requested, the venue no
    longer serves the trades before it. It may also hold trades after `to_ms`, which the next page
    repeats. `is_latest`: `to_ms` is as close to the present as can be trusted. A page that is not
    the latest and covers nothing has a sequel: repeat the same request.
    """

    trades: tuple[Trade, ...]
    from_ms: int
    to_ms: int
    is_latest: bool


@dataclass(frozen=True, slots=True)
class Ticker:
    """A market's last price and best offers; `volume` is the last day's, in the base currency.

    What the venue left out is None. `ts` is the venue's own time, else the time of the answer.
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
        """Every market, requested from the venue. ExchangeUnavailable for an empty answer."""

    def restore_markets(self, markets: Markets) -> None:
        """Uses markets that were loaded before instead of requesting them. Sends nothing."""

    async def fetch_bars(
        self, symbol: str, timeframe: Timeframe, since_ms: int, limit: int
    ) -> answer.Answer:
        """At most `limit` bars that open at or after `since_ms`, in one request.

        The answer holds every row that came, also rows of another time.

        Raises MarketsUnavailable when markets were neither loaded nor restored.
        """

    async def first_bar(self, symbol: str, timeframe: Timeframe) -> Beginning | None:
        """Where the bars begin; None when the venue has none."""

    async def fetch_trades(self, symbol: str, since_ms: int) -> TradePage:
        """The trades from `since_ms` on, as many as one request returns.

        Raises MarketsUnavailable when markets were neither loaded nor restored.
        """

    async def fetch_tickers(self) -> tuple[Ticker, ...]:
        """The tickers of all known markets, by symbol. Never empty."""

    async def server_ms(self) -> int:
        """The venue's clock."""

    async def close(self) -> None:
        """Ends its connections."""
