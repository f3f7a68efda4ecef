"""Whether a series can be trusted: everything that can be checked, in one reading of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collector.errors import BadRequest, CollectorError, ExchangeUnavailable, RetryLater
from collector.reports.check import Check
from collector.reports.coverage import Coverage, CoverageCount
from collector.reports.gap_rule import MAX_GAP_PCT, within_limit
from collector.reports.minute_checks import MinuteChecks
from collector.reports.row_checks import RowChecks
from collector.reports.source_check import SAMPLES, Sample
from collector.reports.windows import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.market.series import Series
    from collector.reports.expected import Expected
    from collector.reports.source_check import FetchBars
    from collector.store.store import Store

NOT_REACHED = "not_reached"
DELISTED = "delisted"
GIVE_UP_AFTER = 3
"""Series in a row for which an exchange did not answer."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The quality settings, as this package needs them."""

    max_gap_pct: float = MAX_GAP_PCT
    strict_gaps: bool = True
    samples: int = SAMPLES
    """Bars to compare with the exchange; 0 sends it no request."""


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """One series, checked. `over_limit`: more of it is missing than the rule allows."""

    series: Series
    coverage: Coverage
    checks: Mapping[str, Check]
    over_limit: bool
    sample: Sample | None = field(default=None, repr=False)
    """Bars to compare with the exchange; None where that proves nothing."""

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks.values())

    def with_check(self, name: str, check: Check) -> SeriesReport:
        return replace(self, checks={**self.checks, name: check})

    def with_source(self, check: Check) -> SeriesReport:
        """With the check `source`, unless this series has nothing to compare with an exchange."""
        return self if self.sample is None else self.with_check("source", check)

    def document(self) -> dict[str, Any]:
        coverage = self.coverage
        timeframe = self.series.timeframe
        return {
            "exchange": self.series.exchange_id,
            "symbol": self.series.symbol,
            "tf": self.series.timeframe.name,
            "rows": coverage.rows,
            "first_ts": coverage.first_ts,
            "last_ts": coverage.last_ts,
            "checks": {name: check.document() for name, check in self.checks.items()},
            "gaps_pct": coverage.gaps_pct,
            "longest_gap_bars": coverage.longest_gap_bars,
            "problem_intervals": [
                {
                    "ts_from": each.from_ms,
                    "ts_to": each.to_ms,
                    "bars": timeframe.count(each.from_ms, each.to_ms),
                }
                for each in sorted(coverage.worst)
            ],
            "expected": coverage.expected,
            "present": coverage.present,
            "partial": coverage.partial,
            "no_trade": coverage.no_trade,
            "missing": coverage.missing,
            "head_missing": coverage.head_missing,
            "tail_missing": coverage.tail_missing,
            "lag_bars": coverage.lag_bars,
            "unconfirmed": coverage.unconfirmed,
        }


def inspect(
    store: Store,
    series: Series,
    demands: Demands,
    expected: Expected,
    *,
    now_ms: int,
    rng: random.Random | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> SeriesReport:
    """Every check that needs no exchange. Waits for the disk: call it in a thread."""
    rows = RowChecks(series, now_ms)
    minutes = MinuteChecks(store, series, strict_gaps=demands.strict_gaps)
    sample = _sample(store, series, demands.samples, rng or random.Random())
    with store.reading(series) as reading:
        count = CoverageCount(series, expected, reading.covered())
        for table in windows(reading):
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


class Comparing:
    """Compares series, one after another, with what their exchange serves today.

    An exchange that does not answer is part of a report, not the end of it; one that did not for
    several series in a row is not called again.
    """

    def __init__(self, fetch: FetchBars) -> None:
        self._fetch = fetch
        self._away: list[CollectorError] = []

    async def of(self, report: SeriesReport, *, is_listed: bool = True) -> SeriesReport:
        """The report with the check `source`, where there is something to compare."""
        if report.sample is None:
            return report
        if len(self._away) >= GIVE_UP_AFTER:
            return report.with_source(unreached(self._away[-1]))
        try:
            source = await report.sample.compare(report.series, self._fetch)
        except RetryLater as error:
            self._away.append(error)
            return report.with_source(unreached(error))
        except BadRequest as error:
            # An exchange that no longer knows the market has nothing to compare with.
            source = unreached(error) if is_listed else gone(error)
        self._away.clear()
        return report.with_source(source)


def unreached(error: CollectorError) -> Check:
    """A check that could not be made."""
    check = Check()
    check.note(1, [{NOT_REACHED: str(error)}])
    return check


def gone(error: CollectorError) -> Check:
    """A check that is no longer possible, which is no fault of the data."""
    check = Check()
    check.note(0, [{DELISTED: str(error)}])
    return check


def reached(check: Check) -> ExchangeUnavailable | None:
    """The error that prevented a check; None when it was made."""
    for example in check.examples:
        if isinstance(example, dict) and NOT_REACHED in example:
            return ExchangeUnavailable(example[NOT_REACHED])
    return None


def _sample(store: Store, series: Series, size: int, rng: random.Random) -> Sample | None:
    """Of the fetched bars: those made of minutes are proven by them."""
    span = store.span(series) if size and store.holds(series) else None
    return None if span is None else Sample(span, series.timeframe, size, rng)
