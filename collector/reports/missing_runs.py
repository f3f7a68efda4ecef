"""Missing slots as the unbroken runs they form, across windows; the longest are remembered."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from collector.market.interval import Interval, runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_KEPT = 1000
"""Runs that are remembered one by one. More than this many holes need one remedy, not a list."""


class MissingRuns:
    """Counts the runs and keeps the longest; costs the same memory whatever is missing."""

    def __init__(self, step_ms: int, most: int = MOST_KEPT) -> None:
        self._step_ms = step_ms
        self._most = most
        self._open: Interval | None = None
        self._kept: list[Interval] = []

    def add(self, ts: NDArray[np.int64]) -> None:
        """The missing slots of the next window, ascending."""
        found = list(runs(ts, self._step_ms))
        if not found:
            return
        if self._open is not None and self._open.to_ms == found[0].from_ms:
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
        return (run.to_ms - run.from_ms) // self._step_ms

    def _longest(self, intervals: list[Interval]) -> list[Interval]:
        return heapq.nsmallest(
            self._most, intervals, key=lambda run: (run.from_ms - run.to_ms, run.from_ms)
        )
