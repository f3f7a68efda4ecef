"""What each day of a series lacks, by its ledger alone: no bar is read.

A slot that no answer covers is missing (pipeline/calendar.py), or unconfirmed inside an open
silence (jobs/unconfirmed.py). What is covered is known from the footers of files, which are in
memory after the first look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.durations import DAY_MS
from collector.market.interval import Interval, clipped, slots, subtract, with_bars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.series import Series
    from collector.market.timeframe import Timeframe
    from collector.reports.expected import Expected


@dataclass(frozen=True, slots=True)
class CoverageDays:
    """For each day of a range, in UTC: bars that are expected to open in it, and of these the
    missing and the unconfirmed ones.
    """

    series: Series
    expected: tuple[int, ...]
    missing: tuple[int, ...]
    unconfirmed: tuple[int, ...]


def calendar_of(
    frame: Timeframe, covered: Sequence[Interval], expected: Expected
) -> Interval | None:
    """From where to where a series should have bars; None when nothing is expected."""
    start = expected.start(frame, covered[0].from_ms if covered else None)
    if start is None:
        return None
    end = expected.end(frame, frame.floor(covered[-1].to_ms) if covered else start)
    return Interval(start, end) if start < end else None


def holes(
    frame: Timeframe, covered: Sequence[Interval], calendar: Interval, expected: Expected
) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """The missing and the unconfirmed ranges of a calendar, ascending; closed time is none."""
    on_grid = (slots(each, frame) for each in covered)
    uncovered = subtract([calendar], [each for each in on_grid if each is not None])
    missing = subtract(uncovered, expected.unconfirmed_slots(frame))
    return with_bars(missing, frame), with_bars(subtract(uncovered, missing), frame)


def coverage_days(
    series: Series, covered: Sequence[Interval], expected: Expected, days: Interval
) -> CoverageDays:
    """`days` begins and ends at midnight."""
    frame, calendar = series.timeframe, calendar_of(series.timeframe, covered, expected)
    if calendar is None:
        nothing = (0,) * ((days.to_ms - days.from_ms) // DAY_MS)
        return CoverageDays(series, nothing, nothing, nothing)
    missing, unconfirmed = holes(frame, covered, calendar, expected)
    return CoverageDays(
        series,
        _by_day([calendar], frame, days),
        _by_day(missing, frame, days),
        _by_day(unconfirmed, frame, days),
    )


def _by_day(stretches: Sequence[Interval], frame: Timeframe, days: Interval) -> tuple[int, ...]:
    """How many bars of the stretches open on each day."""
    edges = np.arange(days.from_ms, days.to_ms + 1, DAY_MS, dtype=np.int64)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for each in clipped(stretches, days):
        first = (each.from_ms - days.from_ms) // DAY_MS
        last = (each.to_ms - 1 - days.from_ms) // DAY_MS
        cuts = np.clip(edges[first : last + 2], each.from_ms, each.to_ms)
        floors = frame.floors(cuts)
        opens = np.where(floors == cuts, cuts, frame.ends(floors))
        counts[first : last + 1] += frame.counts(opens[:-1], opens[1:])
    return tuple(counts.tolist())
