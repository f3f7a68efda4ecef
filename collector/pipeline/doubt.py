"""Which valid bars are requested again before they are accepted. Pure.

A bar may be well formed and still wrong: a venue repeats the last row because the new one is not
complete yet, or sends a price from elsewhere. Such a bar does not fit its neighbours. It is
requested once more, and the second answer is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEIGHBOURS = 500
"""A bar is compared with this many bars before it."""
FEWEST = 50
"""With fewer of them that moved there is nothing to compare with."""
OUT_OF_RANGE = 20.0
"""A range of more than this many times the neighbours' median is out of the ordinary."""
_RENEWED = 25
"""The median is recomputed after this many bars: it hardly moves in between."""


def doubtful(batch: CandleBatch, before: CandleBatch | None = None) -> NDArray[np.bool_]:
    """For each bar whether it does not fit its neighbours. `before` are the bars before them.

    Both ascend. Its range, or its jump from the last close, is beyond 20 times the median of those
    of the 500 bars before; or it is the last one and repeats the one before it, trades and all.
    """
    line, known = batch, 0
    if before is not None and len(before):
        line = CandleBatch.concat([before.take(slice(-NEIGHBOURS, None)), batch])
        known = len(line) - len(batch)
    moves = _moves(line)
    found: NDArray[np.bool_] = np.zeros(len(moves), dtype=np.bool_)
    if _any_may_stand_out(moves):
        # Where too little moves there is no scale: a comparison with NaN is false.
        found = moves > OUT_OF_RANGE * _usual_move(moves)
    if _last_repeats(line):
        found[-1] = True
    return found[known:]


def needs_neighbours(batch: CandleBatch, after_ms: int = 0) -> bool:
    """Whether a bar from `after_ms` on stands out but `doubtful` needs earlier bars to judge it."""
    moves = _moves(batch)
    unjudged = moves[:FEWEST] * (batch.ts[:FEWEST] >= after_ms)
    if not unjudged.any():
        return False
    most, moved = float(unjudged.max()), moves[moves > 0]
    if 2 * np.count_nonzero(moved < most / (OUT_OF_RANGE - 1)) < len(moved):
        return False  # So many are not far below it that the median is not either.
    # Not numpy's median, which loads its masked arrays: 20 ms of a process's start.
    middle = (len(moved) - 1) // 2
    return bool(most > OUT_OF_RANGE * float(np.partition(moved, middle)[middle]))


def _moves(line: CandleBatch) -> NDArray[np.float64]:
    """The range of each bar, or its jump from the last close if that is more."""
    ranges: NDArray[np.float64] = line.h - line.l
    jumps = np.abs(line.o[1:] - line.c[:-1])
    return np.maximum(ranges, np.concatenate(([0.0], jumps))) if len(line) else ranges


def _any_may_stand_out(moves: NDArray[np.float64]) -> bool:
    """Whether at least half of the fewest bars that make a median are far below the largest move.

    In an ordinary page they are not, and one look shows it.
    """
    judged = moves[FEWEST:]
    if not len(judged):
        return False
    return 2 * int(np.count_nonzero(_are_small(moves, judged.max()))) >= FEWEST


def _are_small(moves: NDArray[np.float64], largest: float) -> NDArray[np.bool_]:
    """Those that moved, far less than the largest. The margin is for rounding."""
    small: NDArray[np.bool_] = (moves > 0) & (moves < largest / (OUT_OF_RANGE - 1))
    return small


def _usual_move(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median move of the bars before each; NaN where there are too few, or where none of the
    bars that share a median is far above it.

    Of those that moved at all: in a market with few trades most bars are one trade, and by their
    median every second minute would be out of the ordinary.
    """
    count = len(moves)
    usual = np.full(count, np.nan)
    ends = np.arange(FEWEST, count, _RENEWED)
    if len(ends):
        medians = np.full(len(ends), np.nan)
        near = np.flatnonzero(_may_stand_out(moves, ends))
        if len(near):
            medians[near] = _medians(moves, ends, near)
        usual[FEWEST:] = np.repeat(medians, _RENEWED)[: count - FEWEST]
    return usual


def _may_stand_out(moves: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For the bars before each of `ends`, whether the largest move of all may be far above their
    median: enough of them moved, and most of these far less than it.

    Counting is far cheaper than sorting.
    """
    counts = np.zeros((2, len(moves) + 1), dtype=np.int64)
    np.cumsum(moves > 0, out=counts[0, 1:])
    np.cumsum(_are_small(moves, moves[FEWEST:].max()), out=counts[1, 1:])
    moved, fewer = counts[:, ends] - counts[:, np.maximum(ends - NEIGHBOURS, 0)]
    found: NDArray[np.bool_] = (moved >= FEWEST) & (fewer > (moved - 1) // 2)
    return found


def _medians(
    moves: NDArray[np.float64], ends: NDArray[np.int64], near: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The medians before `ends[near]`; NaN where none of the bars that share it is far above."""
    padded = np.concatenate([np.zeros(NEIGHBOURS), moves])
    before = sliding_window_view(padded, NEIGHBOURS)[ends[near]]
    moved = np.count_nonzero(before, axis=1)
    low = np.maximum.reduceat(moves, ends)[near, None] / (OUT_OF_RANGE - 1)
    fewer = np.count_nonzero((before > 0) & (before < low), axis=1)
    medians = np.full(len(near), np.nan)
    far = np.flatnonzero(fewer > (moved - 1) // 2)
    if len(far):
        ordered = np.sort(np.where(before[far] > 0, before[far], np.inf), axis=1)
        medians[far] = ordered[np.arange(len(far)), (moved[far] - 1) // 2]
    return medians


def _last_repeats(line: CandleBatch) -> bool:
    if len(line) < 2 or line.v[-1] <= 0:
        return False
    return all(column[-1] == column[-2] for column in (line.o, line.h, line.l, line.c, line.v))
