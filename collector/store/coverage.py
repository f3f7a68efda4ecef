"""The ledger: which ranges of a series the exchange's answers cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.interval import Interval, slots, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True, order=True)
class Covered:
    """An unbroken range that successful answers cover, and how many bars are in it."""

    from_ms: int
    to_ms: int
    bars: int

    @property
    def interval(self) -> Interval:
        return Interval(self.from_ms, self.to_ms)


@dataclass(frozen=True, slots=True)
class SeriesCursor:
    """Where work on a series stands, by the files alone.

    since_ms  where coverage begins next_ms   the first slot after it that no answer covers: a
    backfill continues here until_ms  the end of all coverage: an incremental job continues here
    last_ts   the newest bar; None when every answer was empty
    """

    since_ms: int
    next_ms: int
    until_ms: int
    last_ts: int | None


def aligned(covered: Interval | Iterable[Interval], timeframe: Timeframe) -> tuple[Interval, ...]:
    """Covered ranges as disjoint intervals of the timeframe's own slots."""
    asked = [covered] if isinstance(covered, Interval) else covered
    return union(on_grid for each in asked if (on_grid := slots(each, timeframe)) is not None)


def counted(intervals: Sequence[Interval], ts: NDArray[np.int64]) -> tuple[Covered, ...]:
    """The disjoint intervals with the number of bars that open in each. `ts` is ascending."""
    starts = np.searchsorted(ts, [each.from_ms for each in intervals])
    ends = np.searchsorted(ts, [each.to_ms for each in intervals])
    counts = (ends - starts).tolist()
    return tuple(
        Covered(each.from_ms, each.to_ms, bars)
        for each, bars in zip(intervals, counts, strict=True)
    )


def joined(covered: Iterable[Covered]) -> tuple[Covered, ...]:
    """Adds up ledgers of different bars; touching ranges become one."""
    entries = sorted(covered)
    whole = union(entry.interval for entry in entries)
    bars = [0] * len(whole)
    at = 0
    for entry in entries:
        while entry.from_ms >= whole[at].to_ms:
            at += 1
        bars[at] += entry.bars
    return tuple(Covered(w.from_ms, w.to_ms, n) for w, n in zip(whole, bars, strict=True))


def cursor(covered: Sequence[Covered], last_ts: int | None) -> SeriesCursor | None:
    """None when no answer was ever stored."""
    if not covered:
        return None
    return SeriesCursor(covered[0].from_ms, covered[0].to_ms, covered[-1].to_ms, last_ts)
