"""Intervals of time, and the arithmetic that coverage needs."""

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
    """The half-open interval `[from_ms, to_ms)`. Never empty."""

    from_ms: int
    to_ms: int

    def __post_init__(self) -> None:
        if self.from_ms >= self.to_ms:
            raise ValueError(f"[{self.from_ms}, {self.to_ms}) holds no time")

    def overlaps(self, other: Interval) -> bool:
        return self.from_ms < other.to_ms and other.from_ms < self.to_ms


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same time as ascending intervals that neither overlap nor touch."""
    ordered = sorted(intervals)
    if len(ordered) < 2:
        return tuple(ordered)
    merged: list[Interval] = []
    for each in ordered:
        if merged and each.from_ms <= merged[-1].to_ms:
            if each.to_ms > merged[-1].to_ms:
                merged[-1] = Interval(merged[-1].from_ms, each.to_ms)
        else:
            merged.append(each)
    return tuple(merged)


def subtract(intervals: Iterable[Interval], holes: Iterable[Interval]) -> tuple[Interval, ...]:
    """What is left of `intervals` outside `holes`, ascending and disjoint."""
    cuts, wholes = union(holes), union(intervals)
    if not cuts:
        return wholes
    left: list[Interval] = []
    at = 0
    for whole in wholes:
        start = whole.from_ms
        while at < len(cuts) and cuts[at].from_ms < whole.to_ms:
            cut = cuts[at]
            if cut.from_ms > start:
                left.append(Interval(start, cut.from_ms))
            start = max(start, cut.to_ms)
            if cut.to_ms > whole.to_ms:
                break  # It may cut the next one, too.
            at += 1
        if start < whole.to_ms:
            left.append(Interval(start, whole.to_ms))
    return tuple(left)


def clipped(intervals: Iterable[Interval], window: Interval) -> tuple[Interval, ...]:
    """What of each interval lies inside `window`."""
    return tuple(
        Interval(max(each.from_ms, window.from_ms), min(each.to_ms, window.to_ms))
        for each in intervals
        if each.overlaps(window)
    )


def end_of(intervals: Iterable[Interval], ms: int) -> int:
    """The end of the interval that holds a moment; the moment itself when none does."""
    return next((each.to_ms for each in intervals if each.from_ms <= ms < each.to_ms), ms)


def slots(interval: Interval, timeframe: Timeframe) -> Interval | None:
    """The bars that open inside `interval`, as one interval on the timeframe's own grid.

    Requests are by opening time, so a bar belongs to a request iff it opens there. None when no bar
    does.
    """
    start, end = timeframe.ceil(interval.from_ms), timeframe.ceil(interval.to_ms)
    return Interval(start, end) if start < end else None


def covers(disjoint: Sequence[Interval], ts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of `ts` lie inside the ascending, disjoint intervals."""
    if not disjoint:
        return np.zeros(len(ts), dtype=np.bool_)
    if len(disjoint) == 1:
        return (ts >= disjoint[0].from_ms) & (ts < disjoint[0].to_ms)
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


def unbroken(ts: NDArray[np.int64], timeframe: Timeframe) -> tuple[Interval, ...]:
    """The same for the opening times of a timeframe's bars, also where these differ in length.

    Closed time between two bars does not break a run: no bar is left out there.
    """
    if timeframe.are_in_line(ts):
        return (Interval(int(ts[0]), int(ts[-1]) + timeframe.ms),)
    if timeframe.is_uniform or not len(ts):
        return runs(ts, timeframe.ms)
    breaks = np.flatnonzero(timeframe.skips(ts))
    firsts = ts[np.concatenate(([0], breaks + 1))].tolist()
    lasts = timeframe.ends(ts[np.concatenate((breaks, [len(ts) - 1]))]).tolist()
    return tuple(map(Interval, firsts, lasts))


def with_bars(intervals: Iterable[Interval], timeframe: Timeframe) -> tuple[Interval, ...]:
    """Those in which a bar opens: what is left out is closed time."""
    kept = tuple(intervals)
    if timeframe.slots is None:
        return kept
    return tuple(each for each in kept if len(timeframe.opens(each.from_ms, each.to_ms)))
