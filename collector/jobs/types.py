"""Every type of job, as one table: its subject, when it runs, and its parameters.

A new type is a row here and a handler in `workers/handlers`, named in
`workers/all_handlers.py`. REST's schema, the command line's help and docs/job-types.md come from
this table. A database may hold types that this program does not know, created by another version:
use `find` for those, which returns None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from collector.durations import HOUR_MS, MINUTE_MS
from collector.jobs import schedule as schedules
from collector.jobs.cursor import Cursor, CursorShape, SequenceCursor
from collector.jobs.params import GapScanParams, Params, PriceStreamParams, TradesParams

DEFAULT_PRIORITY = 60


class Scope(StrEnum):
    """What one job of a type is about."""

    EXCHANGE = "exchange"
    MARKET = "market"
    SERIES = "series"
    NETWORK = "network"


class Span(StrEnum):
    """Which ends of its work a new job may be given, and what an end that is not given means."""

    NONE = "none"
    """No ends: it looks at what is stored."""
    OPEN = "open"
    """Begins at its creation unless `since` is given, and never ends."""
    PAST = "past"
    """From the first bar to its creation, unless `since` and `until` are given."""
    EXACT = "exact"
    """From `since` to `until`, both required."""


@dataclass(frozen=True, slots=True)
class JobType:
    """One row of the table. Lower priorities go first."""

    name: str
    does: str
    scope: Scope
    priority: int
    schedule: schedules.Schedule | None = None
    """None: once, until it is done; for new bars, whenever one has closed (`at_bar_close`)."""
    at_bar_close: bool = False
    is_duty: bool = False
    """Every exchange has one, whatever is collected there."""
    span: Span = Span.NONE
    cursor: type[CursorShape] = Cursor
    params: type[Params] = Params
    is_urgent: bool = False
    """Its requests may use the reserve of a window."""
    is_offline: bool = False
    """It asks the exchange nothing, so that it also runs when the budget is spent."""
    runs_on: bool = False
    """It has no end: the worker that leases it holds it until it is stopped. It does not count in
    `max_concurrent_jobs`, nor when a worker waits for the end of all work."""

    @property
    def fence_outlives_job(self) -> bool:
        """Whether its fence is stored outside MongoDB: in Redis by what
        publishes to subscribers, or in the files of a network.

        Such a fence begins at the date in seconds, so that the fence of a job made anew is above
        the one before.
        """
        return self.runs_on or self.at_bar_close or self.scope is Scope.NETWORK

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields that a new job of this type must have."""
        subject = {Scope.SERIES: ("symbol", "timeframe"), Scope.MARKET: ("symbol",)}
        ends = ("since", "until") if self.span is Span.EXACT else ()
        return (*subject.get(self.scope, ()), *ends)

    @property
    def takes(self) -> tuple[str, ...]:
        """Fields that it uses; the required ones are among them."""
        ends = {Span.NONE: (), Span.OPEN: ("since",)}.get(self.span, ("since", "until"))
        return tuple(dict.fromkeys((*self.needs, *ends)))

    def usual_schedule(
        self, exchange_id: str, symbol: str, timeframe: str | None
    ) -> schedules.Schedule:
        """The default schedule."""
        if self.at_bar_close and timeframe:
            # Timeframes import numpy, which `--help` must not wait for.
            from collector.exchanges.registry import polls_bars
            from collector.market.timeframe import Timeframe

            frame = Timeframe.parse(timeframe).at(exchange_id, symbol)
            return schedules.Poll(frame) if polls_bars(exchange_id) else schedules.BarClose(frame)
        return self.schedule or schedules.Once()


MARKETS_REFRESH = JobType(
    "markets_refresh",
    "reads what the exchange lists today",
    Scope.EXCHANGE,
    10,
    schedules.Every(12 * HOUR_MS),
    is_duty=True,
)
GAP_BACKFILL = JobType(
    "gap_backfill",
    "fetches one gap of a series",
    Scope.SERIES,
    20,
    span=Span.EXACT,
    is_urgent=True,
)
HISTORY_APPLY = JobType(
    "history_apply",
    "applies the events that were sent to a network, whenever some came",
    Scope.NETWORK,
    30,
    # Events wake it up; this is for one whose sender died before it could.
    schedules.Every(MINUTE_MS),
    cursor=SequenceCursor,
)
PRICE_STREAM = JobType(
    "price_stream",
    "publishes live prices, a heartbeat and the market's status",
    Scope.EXCHANGE,
    30,
    params=PriceStreamParams,
    runs_on=True,
)
OHLCV_INCREMENTAL = JobType(
    "ohlcv_incremental",
    "fetches the bars that have closed since the last run",
    Scope.SERIES,
    50,
    at_bar_close=True,
    span=Span.OPEN,
)
TICKERS_SNAPSHOT = JobType(
    "tickers_snapshot",
    "reads the last prices of all markets",
    Scope.EXCHANGE,
    60,
    schedules.Every(MINUTE_MS),
)
TRADES_INCREMENTAL = JobType(
    "trades_incremental",
    "fetches the trades made since the last run",
    Scope.MARKET,
    65,
    schedules.Every(MINUTE_MS),
    span=Span.OPEN,
    params=TradesParams,
)
GAP_SCAN = JobType(
    "gap_scan",
    "looks for slots that no answer covers, and creates jobs that own them",
    Scope.EXCHANGE,
    66,
    schedules.Every(15 * MINUTE_MS),
    is_duty=True,
    is_offline=True,
    params=GapScanParams,
)
COMPACT = JobType(
    "compact",
    "merges what was written into sealed files",
    Scope.EXCHANGE,
    67,
    schedules.Every(HOUR_MS),
    is_duty=True,
    is_offline=True,
)
TAIL_REFRESH = JobType(
    "tail_refresh",
    "writes the last days of every series anew",
    Scope.EXCHANGE,
    68,
    schedules.Every(HOUR_MS),
    is_duty=True,
    is_offline=True,
)
FULL_SCAN = JobType(
    "full_scan",
    "compacts every series and looks at all of its gaps",
    Scope.EXCHANGE,
    69,
    schedules.Cron("17 2 * * *"),
    is_duty=True,
    is_offline=True,
)
OHLCV_BACKFILL = JobType(
    "ohlcv_backfill",
    "fetches the history of a series",
    Scope.SERIES,
    70,
    span=Span.PAST,
)
OHLCV_FROM_TRADES = JobType(
    "ohlcv_from_trades",
    "makes the history of a series from trades, where the exchange has no old bars",
    Scope.SERIES,
    72,
    span=Span.PAST,
)
VERIFY_SOURCE = JobType(
    "verify_source",
    "compares random stored bars with what the exchange serves today",
    Scope.EXCHANGE,
    85,
    schedules.Cron("37 3 * * 0"),
)

TABLE = {row.name: row for row in tuple(globals().values()) if isinstance(row, JobType)}
"""Every row above, by name, the most urgent first."""


def find(name: str) -> JobType | None:
    """The row of a type; None for one that this program does not know."""
    return TABLE.get(name)


def for_exchanges() -> tuple[JobType, ...]:
    """The types that people may make jobs of. A network's jobs are made with the network."""
    return tuple(each for each in TABLE.values() if each.scope is not Scope.NETWORK)


def duties() -> tuple[str, ...]:
    """The types of the jobs that every exchange has."""
    return tuple(each.name for each in TABLE.values() if each.is_duty)


def running_on() -> tuple[str, ...]:
    """The types whose jobs have no end."""
    return tuple(each.name for each in TABLE.values() if each.runs_on)


def belongings() -> tuple[str, ...]:
    """The types whose jobs come and go with the exchange's connector."""
    return (*duties(), *running_on())


def offline() -> tuple[str, ...]:
    """The types whose jobs ask the exchange nothing."""
    return tuple(each.name for each in TABLE.values() if each.is_offline)


def is_history(name: str) -> bool:
    """Whether jobs of this type walk through a range of the past, and keep how far they came."""
    row = find(name)
    return row is not None and row.span in (Span.PAST, Span.EXACT)


def history() -> tuple[str, ...]:
    """The types whose jobs fetch the past of a series."""
    return tuple(each.name for each in TABLE.values() if each.span is Span.PAST)
