"""Reports on stored series as answers show them. Times are epoch ms."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from api.schemas.fields import ExchangeId, QueryFields, SearchText, Symbol, TimeframeName, View
from collector.operations.series_reports import SeriesFilter


class SeriesAsked(QueryFields):
    """Which stored series; all of them by default."""

    exchange_id: ExchangeId | None = None
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None
    search: SearchText = Field(default="", description="Letters of the symbol; `btcusdt` is fine")
    limit: int = Field(default=20, ge=1, le=100, description="How many series at most")
    cursor: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="`next_cursor` of the page before"
    )

    def filter(self) -> SeriesFilter:
        return SeriesFilter(**self.model_dump())


class _Page(View):
    generated_at: datetime
    """When it was made; the header Age has the seconds since then"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""


class CoverageView(View):
    """How much of one series is stored.

    The calendar runs from the requested beginning of the series to the last bar that closed more
    than five minutes ago, or to its delisting.
    """

    exchange_id: str
    """The exchange"""
    symbol: str
    """The market"""
    timeframe: str
    """The length of its bars"""
    first_ts: int | None
    """The first bar that is stored"""
    last_ts: int | None
    """The last bar that is stored"""
    expected: int
    """Slots of the calendar"""
    present: int
    """Slots with a bar"""
    no_trade: int
    """Slots that an answer covered and in which nothing was traded"""
    missing: int
    """Slots that no answer has covered, without the unconfirmed ones"""
    longest_gap_bars: int
    """The longest missing stretch, in bars"""
    gaps_pct: float
    """The missing share, 0 to 1"""
    lag_bars: int
    """`tail_missing` of a market that trades"""
    partial: int
    """Bars of `present` that lack some of their minutes"""
    head_missing: int
    """Slots of `missing` before all that is stored"""
    tail_missing: int
    """Slots of `missing` behind all that is stored"""
    unconfirmed: int
    """Slots that the exchange reported as empty at most three days ago, and is asked about again;
    they are in none of the figures for missing ones"""


class CoveragePage(_Page):
    items: list[CoverageView]
    """By exchange, symbol and timeframe"""


class MissingView(View):
    """One row of missing.csv: a series' calendar `[ts_from, ts_to)` and what it lacks."""

    symbol: str
    """The market"""
    tf: str
    """The length of its bars"""
    ts_from: int | None
    """Where the calendar begins"""
    ts_to: int | None
    """Where it ends"""
    gaps_pct: float
    """The missing share, 0 to 1"""
    gaps_count: int
    """Missing slots"""
    longest_gap_bars: int
    """The longest missing stretch, in bars"""
    exchange: str
    """The exchange"""
    expected: int
    """Slots of the calendar"""
    no_trade: int
    """Slots in which nothing was traded"""
    partial: int
    """Bars that lack some of their minutes"""
    head_missing: int
    """Missing slots before all that is stored"""
    tail_missing: int
    """Missing slots behind all that is stored"""
    lag_bars: int
    """`tail_missing` of a market that trades"""
    unconfirmed: int
    """Slots that the exchange reported as empty at most three days ago, and is asked about again;
    they are in none of the figures for missing ones"""


class RangeView(View):
    """A range of a series."""

    exchange: str
    """The exchange"""
    symbol: str
    """The market"""
    tf: str
    """The length of its bars"""
    ts_from: int
    """Where it begins"""
    ts_to: int
    """Where it ends"""
    bars: int
    """How many bars it has"""


class ProblemView(RangeView):
    """One missing stretch, and what to do about it."""

    advice: str
    """What to do: load_again, or check_delisting_or_rename"""


class UnconfirmedView(RangeView):
    """One range that the exchange reported as empty, which is not believed yet."""

    asked_again: int | None
    """When it is asked about again; null while its job is paused"""


class MissingSummary(View):
    """Of the series on this page."""

    series: int
    """How many"""
    expected: int
    """Slots of their calendars"""
    missing: int
    """Slots that are missing"""
    gaps_pct: float
    """The missing share, 0 to 1"""
    max_gap_pct: float
    """The share that may be missing"""
    over_limit: list[str]
    """Series of which more is missing"""
    worst: list[ProblemView]
    """The longest missing stretches, the longest first"""
    recommendations: list[str]
    """What to do, one sentence for each symbol and remedy"""
    unconfirmed: int
    """Slots that are unconfirmed"""
    unconfirmed_ranges: list[UnconfirmedView]
    """The longest unconfirmed ranges, the longest first"""


class MissingPage(_Page):
    items: list[MissingView]
    """By exchange, symbol and timeframe"""
    summary: MissingSummary
    """Over the items of this page"""


class CheckView(View):
    """One check of one series."""

    ok: bool
    """Whether it holds"""
    count: int
    """How many cases against it"""
    examples: list[Any]
    """The first few of them: times, or what was found there"""


class IntervalView(View):
    """A missing stretch."""

    ts_from: int
    """Where it begins"""
    ts_to: int
    """Where it ends"""
    bars: int
    """How many bars it has"""


class ValidationView(View):
    """One series of validate.json."""

    exchange: str
    """The exchange"""
    symbol: str
    """The market"""
    tf: str
    """The length of its bars"""
    rows: int
    """Rows that were read"""
    first_ts: int | None
    """The first bar that is stored"""
    last_ts: int | None
    """The last bar that is stored"""
    checks: dict[str, CheckView]
    """By name"""
    gaps_pct: float
    """The missing share, 0 to 1"""
    longest_gap_bars: int
    """The longest missing stretch, in bars"""
    problem_intervals: list[IntervalView]
    """The longest missing stretches"""
    expected: int
    """Slots of the calendar"""
    present: int
    """Slots with a bar"""
    partial: int
    """Bars that lack some of their minutes"""
    no_trade: int
    """Slots in which nothing was traded"""
    missing: int
    """Slots that no answer has covered, without the unconfirmed ones"""
    head_missing: int
    """Missing slots before all that is stored"""
    tail_missing: int
    """Missing slots behind all that is stored"""
    lag_bars: int
    """`tail_missing` of a market that trades"""
    unconfirmed: int
    """Slots that the exchange reported as empty at most three days ago, and is asked about again;
    they are in none of the figures for missing ones"""


class ValidationSummary(View):
    """Of the series on this page."""

    ok: bool
    """Whether every check holds"""
    series: int
    """How many series"""
    series_ok: int
    """Those of them whose checks all hold"""
    rows: int
    """Rows that were read"""
    missing: int
    """Slots that are missing"""
    gaps_pct: float
    """The missing share, 0 to 1"""
    max_gap_pct: float
    """The share that may be missing"""
    over_limit: list[str]
    """Series of which more is missing"""
    failed_checks: dict[str, int]
    """How many series failed each check"""
    expected: int
    """Slots of their calendars"""
    unconfirmed: int
    """Slots that are unconfirmed"""


class ValidationPage(_Page):
    """validate.json, a page of it."""

    build_signature: str
    """The version that made it"""
    items: list[ValidationView]
    """Its `series`, by exchange, symbol and timeframe"""
    summary: ValidationSummary
    """Over the items of this page"""
