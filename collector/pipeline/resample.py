"""Longer bars from shorter ones.

The bars of a market that never closes lie on a uniform grid, so a window is a row of a reshaped
column and nothing has to be searched: the windows without a gap are aggregated by strides over
whole columns, and only those that hold a gap are looked at one by one, which is again a few
operations over all of them. Months, and windows with closed time in them, hold different numbers of
bars, and are handled in uneven.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.durations import DAY_MS
from collector.market.candles import BAR, MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.pipeline.extra_windows import extra_of_windows
from collector.pipeline.uneven import resample_uneven

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe

_BLOCK = 8_192
"""Windows aggregated at a time: their bars stay in the cache while every stride passes over them.
A year of 1m to 5m, 15m and 1h is 1.5x as fast as with strides over whole columns."""


def resample(batch: CandleBatch, source: Timeframe, target: Timeframe) -> CandleBatch:
    """The full `target` windows of a grid of `source` bars; partial edges are left out.

    `batch` is ascending, one row a slot, as `calendar` makes it; ValueError when slots are missing.
    o is the first, h the greatest, l the least, c the last, v and t the sums, of the window's bars;
    its fillers lend no price. A window with a gap in it is PARTIAL; a window of fillers is one.
    """
    if not divides(source, target):
        raise ValueError(f"{target} bars cannot be made of {source} bars")
    if len(batch) and _leaves_out(batch, source):
        raise ValueError("resampling needs a uniform grid: fill the calendar first")
    if target.months or source.slots is not None:
        return resample_uneven(batch, source, target)
    bars = target.ms // source.ms
    whole = _whole_windows(batch, source, target, bars)
    if not len(whole):
        return whole
    longer = _aggregate(whole, bars, source.ms)
    if whole.gap.any():
        _mend(longer, whole, bars)
    return longer


def _leaves_out(batch: CandleBatch, source: Timeframe) -> bool:
    if source.slots is not None:
        return bool(source.skips(batch.ts).any())
    # Times ascend and are aligned, so their count alone shows that none is missing.
    return len(batch) != source.count(int(batch.ts[0]), int(batch.ts[-1])) + 1


def divides(source: Timeframe, target: Timeframe) -> bool:
    """Whether a whole number of `source` bars, on their own grid, make a `target` bar."""
    if source.months:
        return bool(target.months) and target.months % source.months == 0
    # Months are whole days, whatever their number.
    longer_ms = DAY_MS if target.months else target.ms
    return longer_ms % source.ms == 0 and source.aligned(target.floor(0))


def _whole_windows(
    batch: CandleBatch, source: Timeframe, target: Timeframe, bars: int
) -> CandleBatch:
    if not len(batch):
        return batch
    first = int(batch.ts[0])
    skip = source.count(first, target.ceil(first))
    windows = max(0, len(batch) - skip) // bars
    return batch.take(slice(skip, skip + windows * bars))


def _aggregate(whole: CandleBatch, bars: int, step_ms: int) -> CandleBatch:
    windows = len(whole) // bars
    # One allocation for all columns: a large one comes in large pages, which are quick to get.
    o, h, low, c, v, t = np.empty((6, windows))
    o[:] = whole.o[::bars]
    c[:] = whole.c[bars - 1 :: bars]
    reduce_windows(np.maximum, whole.h, bars, h)
    reduce_windows(np.minimum, whole.l, bars, low)
    reduce_windows(np.add, whole.v, bars, v)
    reduce_windows(np.add, whole.t, bars, t)
    ts = np.arange(whole.ts[0], whole.ts[-1] + 1, bars * step_ms)
    extra = extra_of_windows(whole, np.arange(0, len(whole), bars)) if whole.extra else {}
    return CandleBatch(ts, o, h, low, c, v, t, np.zeros(windows, dtype=np.int8), extra)


def reduce_windows(
    operation: np.ufunc, column: NDArray[Any], bars: int, totals: NDArray[Any]
) -> None:
    """Every window's total. Long strides over the column beat short loops over the windows.

    Sums are added up from the first bar to the last, so that they are the same to the last bit.
    """
    if bars == 1:
        totals[:] = column
        return
    in_any_order = operation in (np.maximum, np.minimum)
    pairs = np.empty(_BLOCK * bars if in_any_order else 0, dtype=column.dtype)
    for start in range(0, len(totals), _BLOCK):
        total = totals[start : start + _BLOCK]
        block = column[start * bars : (start + _BLOCK) * bars]
        if in_any_order:
            parts = _by_pairs(operation, block, bars, pairs)
        else:
            parts = [block[at::bars] for at in range(bars)]
        first, *others = parts
        for part in others:
            first = operation(first, part, out=total)
        if not others:
            total[:] = first


def _by_pairs(
    operation: np.ufunc, block: NDArray[Any], bars: int, pairs: NDArray[Any]
) -> list[NDArray[Any]]:
    """Parts of every window that make its total: neighbours first, without a stride, which is many
    times as fast.
    """
    paired = operation(block[:-1], block[1:], out=pairs[: len(block) - 1])
    parts = [paired[at::bars] for at in range(0, bars - 1, 2)]
    return [*parts, block[bars - 1 :: bars]] if bars % 2 else parts


def _mend(longer: CandleBatch, whole: CandleBatch, bars: int) -> None:
    """Redoes the windows that hold a gap, in place."""
    windows: NDArray[np.intp] = np.flatnonzero(whole.gap != BAR) // bars
    windows = windows[np.append(True, windows[1:] != windows[:-1])]
    gap = whole.gap.reshape(-1, bars)[windows]

    def column(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.reshape(-1, bars)[windows]

    bar = (gap != NO_TRADE) & (gap != MISSING)
    some = bar.any(axis=1)
    rows = np.arange(len(windows))
    # Where every row is a filler they are all alike, and any of them will do.
    first = np.argmax(bar, axis=1)
    last = np.where(some, bars - 1 - np.argmax(bar[:, ::-1], axis=1), 0)
    lends = bar | ~some[:, None]
    longer.o[windows] = column(whole.o)[rows, first]
    longer.h[windows] = np.where(lends, column(whole.h), -np.inf).max(axis=1)
    longer.l[windows] = np.where(lends, column(whole.l), np.inf).min(axis=1)
    longer.c[windows] = column(whole.c)[rows, last]
    longer.t[windows] = np.where(lends, column(whole.t), 0.0).sum(axis=1)
    reason = np.where((gap == MISSING).any(axis=1), MISSING, NO_TRADE)
    longer.gap[windows] = np.where(some, PARTIAL, reason)
