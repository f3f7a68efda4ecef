"""Longer bars from shorter ones where windows hold different numbers of them.

Months differ in length, and a window may hold closed time: the last hour of a week of foreign
exchange has 55 minutes. Each window is a slice between two bounds and numpy's `reduceat` does the
rest. The rules are those of resample.py; a property test compares the two where both apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import BAR, MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.pipeline.extra_windows import extra_of_windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe

    Bounds = NDArray[np.intp]


def resample_uneven(batch: CandleBatch, source: Timeframe, target: Timeframe) -> CandleBatch:
    """The full `target` windows of a grid of `source` bars; see resample."""
    whole, opens, starts = _whole_windows(batch, source, target)
    if not len(starts):
        return CandleBatch.empty()
    bar = (whole.gap != NO_TRADE) & (whole.gap != MISSING)
    some = np.logical_or.reduceat(bar, starts)
    # Where every row is a filler they are all alike, and any of them will do.
    lends = bar | ~np.repeat(some, np.diff(starts, append=len(whole)))
    first, last = _ends_of(lends, starts)
    return CandleBatch(
        opens,
        whole.o[first],
        np.maximum.reduceat(np.where(lends, whole.h, -np.inf), starts),
        np.minimum.reduceat(np.where(lends, whole.l, np.inf), starts),
        whole.c[last],
        np.add.reduceat(whole.v, starts),
        np.add.reduceat(np.where(lends, whole.t, 0.0), starts),
        _gaps(whole.gap, some, starts),
        extra_of_windows(whole, starts),
    )


def newest_of(
    values: NDArray[np.int32], opens: NDArray[np.int64], longer: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The greatest value of each window: `opens` are the bars' times, `longer` the windows'."""
    newest: NDArray[np.int32] = np.maximum.reduceat(values, np.searchsorted(opens, longer))
    return newest


def whole_from(source: Timeframe, target: Timeframe, first_ms: int) -> int:
    """Where the first complete window begins, of bars that begin at `first_ms`."""
    start = target.floor(first_ms)
    return start if not len(source.opens(start, first_ms)) else target.end(start)


def whole_until(source: Timeframe, target: Timeframe, end_ms: int) -> int:
    """Where the last complete window ends, of bars that end at `end_ms`."""
    end = target.ceil(end_ms)
    return end if not len(source.opens(end_ms, end)) else target.floor(end_ms)


def _whole_windows(
    batch: CandleBatch, source: Timeframe, target: Timeframe
) -> tuple[CandleBatch, NDArray[np.int64], Bounds]:
    """The bars of full windows, when these open, and where each starts among the bars."""
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp)
    if not len(batch):
        return batch, *nothing
    first = whole_from(source, target, int(batch.ts[0]))
    end = whole_until(source, target, source.end(int(batch.ts[-1])))
    if first >= end:
        return batch, *nothing
    inside = slice(*np.searchsorted(batch.ts, (first, end)).tolist())
    whole = batch.take(inside)
    opens, starts = np.unique(target.floors(whole.ts), return_index=True)
    return whole, opens, starts


def _ends_of(lends: NDArray[np.bool_], starts: Bounds) -> tuple[Bounds, Bounds]:
    """Each window's first and last row that has a price."""
    at = np.flatnonzero(lends)
    ends = np.append(starts[1:], len(lends))
    return at[np.searchsorted(at, starts)], at[np.searchsorted(at, ends) - 1]


def _gaps(gap: NDArray[np.int8], some: NDArray[np.bool_], starts: Bounds) -> NDArray[np.int8]:
    lacks = np.logical_or.reduceat(gap != BAR, starts)
    owed = np.logical_or.reduceat(gap == MISSING, starts)
    found = np.where(some, PARTIAL, np.where(owed, MISSING, NO_TRADE))
    return np.where(lacks, found, BAR).astype(np.int8)
