"""Reports on stored series as answers show them."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints

from api.schemas.fields import ExchangeId, QueryFields, SearchText, Symbol, TimeframeName
from collector.reports.coverage import Coverage


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


class CoverageView(BaseModel):
    """How much of one series is stored. `gaps_pct` is the missing share, 0 to 1.

    The calendar runs from the requested beginning of the series to the last bar that closed more
    than five minutes ago, or to its delisting. Of what is `missing`, `head_missing` lie before all
    that is stored and `tail_missing` behind it; `lag_bars` is the latter for a market that trades.
    Of what is `present`, `partial` bars lack some of their minutes.
    """

    exchange_id: str
    symbol: str
    timeframe: str
    first_ts: int | None
    last_ts: int | None
    expected: int
    present: int
    no_trade: int
    missing: int
    longest_gap_bars: int
    gaps_pct: float
    lag_bars: int
    partial: int
    head_missing: int
    tail_missing: int

    @classmethod
    def of(cls, coverage: Coverage) -> Self:
        return cls(
            exchange_id=coverage.series.exchange_id,
            symbol=coverage.series.symbol,
            timeframe=coverage.series.timeframe.name,
            first_ts=coverage.first_ts,
            last_ts=coverage.last_ts,
            expected=coverage.expected,
            present=coverage.present,
            no_trade=coverage.no_trade,
            missing=coverage.missing,
            longest_gap_bars=coverage.longest_gap_bars,
            gaps_pct=coverage.gaps_pct,
            lag_bars=coverage.lag_bars,
            partial=coverage.partial,
            head_missing=coverage.head_missing,
            tail_missing=coverage.tail_missing,
        )


class CoveragePage(BaseModel):
    """By exchange, symbol and timeframe."""

    items: list[CoverageView]
    next_cursor: str | None


class MissingView(BaseModel):
    """One row of missing.csv: a series' calendar `[ts_from, ts_to)` and what it lacks."""

    symbol: str
    tf: str
    ts_from: int | None
    ts_to: int | None
    gaps_pct: float
    gaps_count: int
    longest_gap_bars: int
    exchange: str
    expected: int
    no_trade: int
    partial: int
    head_missing: int
    tail_missing: int
    lag_bars: int


class ProblemView(BaseModel):
    """One missing stretch, and what to do about it."""

    exchange: str
    symbol: str
    tf: str
    ts_from: int
    ts_to: int
    bars: int
    advice: str


class MissingSummary(BaseModel):
    """Of the series on this page; `worst` begins with the longest stretch."""

    series: int
    expected: int
    missing: int
    gaps_pct: float
    max_gap_pct: float
    over_limit: list[str]
    worst: list[ProblemView]
    recommendations: list[str]


class MissingPage(BaseModel):
    items: list[MissingView]
    next_cursor: str | None
    summary: MissingSummary


class CheckView(BaseModel):
    """`examples` are the first few of `count` cases: times, or what was found there."""

    ok: bool
    count: int
    examples: list[Any]


class IntervalView(BaseModel):
    ts_from: int
    ts_to: int
    bars: int


class ValidationView(BaseModel):
    """One series of validate.json."""

    exchange: str
    symbol: str
    tf: str
    rows: int
    first_ts: int | None
    last_ts: int | None
    checks: dict[str, CheckView]
    gaps_pct: float
    longest_gap_bars: int
    problem_intervals: list[IntervalView]
    expected: int
    present: int
    partial: int
    no_trade: int
    missing: int
    head_missing: int
    tail_missing: int
    lag_bars: int


class ValidationSummary(BaseModel):
    """Of the series on this page."""

    ok: bool
    series: int
    series_ok: int
    rows: int
    missing: int
    gaps_pct: float
    max_gap_pct: float
    over_limit: list[str]
    failed_checks: dict[str, int]
    expected: int


class ValidationPage(BaseModel):
    """validate.json, a page of it; `items` are its `series`."""

    generated_at: str
    build_signature: str
    items: list[ValidationView]
    next_cursor: str | None
    summary: ValidationSummary
