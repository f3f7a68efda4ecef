"""Stretches of time, and the little arithmetic that coverage needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The half-open stretch `[from_ms, to_ms)`. Never empty."""

    from_ms: int
    to_ms: int

    def __post_init__(self) -> None:
        if self.from_ms >= self.to_ms:
            raise ValueError(f"[{self.from_ms}, {self.to_ms}) holds no time")

    def overlaps(self, other: Interval) -> bool:
        return self.from_ms < other.to_ms and other.from_ms < self.to_ms


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same time as ascending intervals that neither overlap nor touch."""
    merged: list[Interval] = []
    for each in sorted(intervals):
        if merged and each.from_ms <= merged[-1].to_ms:
            if each.to_ms > merged[-1].to_ms:
                merged[-1] = Interval(merged[-1].from_ms, each.to_ms)
        else:
            merged.append(each)
    return tuple(merged)


def subtract(intervals: Iterable[Interval], holes: Iterable[Interval]) -> tuple[Interval, ...]:
    """What is left of `intervals` outside `holes`, ascending and disjoint."""
    cuts = union(holes)
    left: list[Interval] = []
    for whole in union(intervals):
        start = whole.from_ms
        for cut in cuts:
            if cut.to_ms <= start or cut.from_ms >= whole.to_ms:
                continue
            if cut.from_ms > start:
                left.append(Interval(start, cut.from_ms))
            start = cut.to_ms
        if start < whole.to_ms:
            left.append(Interval(start, whole.to_ms))
    return tuple(left)


def slots(interval: Interval, timeframe: Timeframe) -> Interval | None:
    """The bars that open inside `interval`, as one interval on the timeframe's own grid.

    Venues are asked by opening time, so a bar belongs to what was asked iff it opens there.
    None when no bar does.
    """
    start = _ceil(interval.from_ms, timeframe)
    end = _ceil(interval.to_ms, timeframe)
    return Interval(start, end) if start < end else None


def covers(disjoint: Sequence[Interval], ts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of `ts` lie inside the ascending, disjoint intervals."""
    if not disjoint:
        return np.zeros(len(ts), dtype=np.bool_)
    starts = np.array([each.from_ms for each in disjoint], dtype=np.int64)
    ends = np.array([each.to_ms for each in disjoint], dtype=np.int64)
    at = np.searchsorted(starts, ts, side="right") - 1
    return (at >= 0) & (ts < ends[at])


def runs(ts: NDArray[np.int64], step_ms: int) -> tuple[Interval, ...]:
    """Ascending slots, gathered into the unbroken runs they form."""
    if not len(ts):
        return ()
    breaks = np.flatnonzero(np.diff(ts) != step_ms)
    firsts = ts[np.concatenate(([0], breaks + 1))].tolist()
    lasts = ts[np.concatenate((breaks, [len(ts) - 1]))].tolist()
    return tuple(Interval(first, last + step_ms) for first, last in zip(firsts, lasts, strict=True))


def _ceil(ts_ms: int, timeframe: Timeframe) -> int:
    return ts_ms if timeframe.aligned(ts_ms) else timeframe.next_open(ts_ms)
