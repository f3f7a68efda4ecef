"""Whether a series can be trusted: everything that can be checked, in one reading of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable, RetryLater
from collector.reports.check import Check
from collector.reports.coverage import Coverage, CoverageCount
from collector.reports.gap_rule import MAX_GAP_PCT, within_limit
from collector.reports.minute_checks import MinuteChecks, minutes_of
from collector.reports.row_checks import RowChecks
from collector.reports.source_check import SAMPLES, Sample
from collector.reports.windows import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.market.series import Series
    from collector.reports.source_check import FetchBars
    from collector.store.store import Store

NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True)
class Demands:
    """What is asked of a series: the quality settings, as this room sees them."""

    max_gap_pct: float = MAX_GAP_PCT
    strict_gaps: bool = True
    samples: int = SAMPLES
    """Bars to compare with the exchange; 0 asks it nothing."""


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """One series, checked. `over_limit`: more of it is missing than the rule allows."""

    series: Series
    coverage: Coverage
    checks: Mapping[str, Check]
    over_limit: bool
    sample: Sample | None = field(default=None, repr=False)
    """Bars to compare with the exchange; None where that says nothing new."""

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks.values())

    def document(self) -> dict[str, Any]:
        coverage = self.coverage
        step_ms = self.series.timeframe.ms
        return {
            "exchange": self.series.exchange_id,
            "symbol": self.series.symbol,
            "tf": self.series.timeframe.name,
            "rows": coverage.expected,
            "first_ts": coverage.first_ts,
            "last_ts": coverage.last_ts,
            "checks": {name: check.document() for name, check in self.checks.items()},
            "gaps_pct": coverage.gaps_pct,
            "longest_gap_bars": coverage.longest_gap_bars,
            "problem_intervals": [
                {
                    "ts_from": each.from_ms,
                    "ts_to": each.to_ms,
                    "bars": (each.to_ms - each.from_ms) // step_ms,
                }
                for each in sorted(coverage.worst)
            ],
        }


def inspect(
    store: Store,
    series: Series,
    demands: Demands,
    *,
    now_ms: int,
    rng: random.Random | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> SeriesReport:
    """Every check that needs no exchange. Waits for the disk: call it in a thread."""
    rows, count = RowChecks(series, now_ms), CoverageCount(series)
    minutes = MinuteChecks(store, series, strict_gaps=demands.strict_gaps)
    sample = _sample(store, series, demands.samples, rng or random.Random())
    for table in windows(store, series):
        rows.add(table)
        count.add(table)
        minutes.add(table)
        if sample is not None:
            sample.add(table)
        if on_rows is not None:
            on_rows(len(table))
    coverage = count.counted()
    over_limit = not within_limit(coverage, demands.max_gap_pct)
    calendar = Check()
    if over_limit:
        calendar.note(coverage.missing, [[run.from_ms, run.to_ms] for run in coverage.worst])
    checks = {**rows.checks, **minutes.checks, "calendar": calendar}
    return SeriesReport(series, coverage, checks, over_limit, sample)


async def with_source(report: SeriesReport, fetch: FetchBars) -> SeriesReport:
    """The report with the check `source`. An exchange that does not answer is said, not raised."""
    if report.sample is None:
        return report
    try:
        source = await report.sample.compare(report.series, fetch)
    except RetryLater as error:
        source = unreached(error)
    return with_check(report, "source", source)


def with_check(report: SeriesReport, name: str, check: Check) -> SeriesReport:
    checks = {**report.checks, name: check}
    return SeriesReport(report.series, report.coverage, checks, report.over_limit, report.sample)


def unreached(error: RetryLater) -> Check:
    """A check that could not be made."""
    check = Check()
    check.note(1, [{NOT_REACHED: str(error)}])
    return check


def reached(check: Check) -> ExchangeUnavailable | None:
    """The error that kept a check from being made; None when it was made."""
    for example in check.examples:
        if isinstance(example, dict) and NOT_REACHED in example:
            return ExchangeUnavailable(example[NOT_REACHED])
    return None


def _sample(store: Store, series: Series, size: int, rng: random.Random) -> Sample | None:
    """Of the bars that were fetched: longer ones are proven by their minutes."""
    minutes = minutes_of(series)
    made_of_minutes = series != minutes and store.holds(minutes)
    span = store.span(series) if size and not made_of_minutes and store.holds(series) else None
    return None if span is None else Sample(span, series.timeframe.ms, size, rng)
