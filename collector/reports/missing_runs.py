"""Missing slots as the unbroken runs they form, across windows; the longest are remembered."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from collector.market.interval import Interval, unbroken

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe

MOST_KEPT = 1000
"""Runs that are remembered one by one. More than this many holes need one remedy, not a list."""


class MissingRuns:
    """Counts the runs and keeps the longest; costs the same memory whatever is missing."""

    def __init__(self, timeframe: Timeframe, most: int = MOST_KEPT) -> None:
        self._timeframe = timeframe
        self._most = most
        self._open: Interval | None = None
        self._kept: list[Interval] = []

    def add(self, ts: NDArray[np.int64]) -> None:
        """The missing slots of the next window, ascending."""
        self.add_runs(unbroken(ts, self._timeframe))

    def add_runs(self, intervals: Iterable[Interval]) -> None:
        """The next missing stretches, ascending."""
        found = list(intervals)
        if not found:
            return
        # Closed time between two stretches holds no bar that could be there.
        if self._open is not None and not self._timeframe.count(self._open.to_ms, found[0].from_ms):
            found[0] = Interval(self._open.from_ms, found[0].to_ms)
        elif self._open is not None:
            found.insert(0, self._open)
        self._open = found.pop()
        if found:
            self._kept = self._longest([*self._kept, *found])

    def longest(self) -> tuple[Interval, ...]:
        """The longest first; of equally long ones the earlier."""
        last = [] if self._open is None else [self._open]
        return tuple(self._longest([*self._kept, *last]))

    def bars(self, run: Interval) -> int:
        return self._timeframe.count(run.from_ms, run.to_ms)

    def _longest(self, intervals: list[Interval]) -> list[Interval]:
        return heapq.nsmallest(
            self._most, intervals, key=lambda run: (run.from_ms - run.to_ms, run.from_ms)
        )
