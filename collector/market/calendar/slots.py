"""The bars of a timeframe in a calendar of sessions.

Time is cut into *windows*: bars up to a day long are counted from the start of their trading day,
the last of a day ends with it; longer bars are whole trading days. A window in which the market is
open for a while is a *slot*: a bar is expected there. The others hold no slot.

Slots are kept as runs of equal steps, one or a few for every trading day, so that counting and
stepping over years is a search in some ten thousand numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.durations import DAY_MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Windows and slots, by arrays of opening times."""

    identity: str
    """Of the calendar they belong to."""
    _blocks: Times
    """Where windows are counted from, ascending."""
    _step: int | None
    """How long windows are; None when each is a whole block."""
    _firsts: Times
    """The first slot of every run."""
    _before: Times
    """How many slots lie before each run, and in the end how many there are."""

    @classmethod
    def of(
        cls, opens: Times, closes: Times, blocks: Times, step: int | None, identity: str
    ) -> Slots:
        """`opens` and `closes` are the open stretches, `blocks` what windows are counted from."""
        windows = cls(identity, blocks, step, blocks, blocks)
        cuts = blocks[windows._inside(opens, closes, blocks)]
        starts = np.unique(np.concatenate((opens, cuts)))
        ends = np.append(np.minimum(starts[1:], closes[_place(opens, starts[:-1])]), closes[-1])
        firsts, lasts = windows.floors(starts), windows.floors(ends - 1)
        length = step or 1
        # A stretch that begins in the window in which the one before ended shares its slot.
        shared = np.append(False, firsts[1:] <= lasts[:-1])
        counts = (lasts - firsts) // length + 1 - shared
        firsts = np.where(shared, firsts + length, firsts)
        some = counts > 0
        before = np.concatenate(([0], np.cumsum(counts[some])))
        return cls(identity, blocks, step, firsts[some], before)

    def floors(self, ts: Times) -> Times:
        """The start of the window that holds each time, whether it is a slot or not."""
        block = self._blocks[_place(self._blocks, ts)]
        if self._step is None:
            return block
        floors: Times = block + (ts - block) // self._step * self._step
        return floors

    def ends(self, opens: Times) -> Times:
        """When the windows that start at these times end."""
        after = np.minimum(_place(self._blocks, opens) + 1, len(self._blocks) - 1)
        block = self._blocks[after]
        if self._step is None:
            return np.where(block > opens, block, opens + DAY_MS)
        ends: Times = opens + self._step
        return np.where((block > opens) & (block < ends), block, ends)

    def counts_before(self, ts: Times) -> Times:
        """How many slots open before each time."""
        if not len(self._firsts):
            return np.zeros(len(ts), dtype=np.int64)
        run = np.searchsorted(self._firsts, ts, side="left") - 1
        at = np.maximum(run, 0)
        length = self._step or 1
        inside = -(-(ts - self._firsts[at]) // length)
        counts: Times = self._before[at] + np.minimum(
            inside, self._before[at + 1] - self._before[at]
        )
        return np.where(run < 0, 0, counts)

    def at(self, numbers: Times) -> Times:
        """The opening times of slots by their number; beyond either end the outermost one."""
        numbers = np.clip(numbers, 0, int(self._before[-1]) - 1)
        run = np.searchsorted(self._before, numbers, side="right") - 1
        times: Times = self._firsts[run] + (numbers - self._before[run]) * (self._step or 1)
        return times

    def between(self, from_ms: int, to_ms: int) -> Times:
        """Every slot that opens in `[from_ms, to_ms)`."""
        first, end = self.counts_before(np.array([from_ms, to_ms], dtype=np.int64)).tolist()
        return self.at(np.arange(first, max(first, end), dtype=np.int64))

    @staticmethod
    def _inside(opens: Times, closes: Times, times: Times) -> NDArray[np.bool_]:
        at = np.searchsorted(opens, times, side="right") - 1
        return (at >= 0) & (times < closes[np.maximum(at, 0)])


def _place(ascending: Times, ts: Times) -> NDArray[np.intp]:
    """Of each time the last of the ascending ones that is not after it; else the first."""
    place: NDArray[np.intp] = np.maximum(np.searchsorted(ascending, ts, side="right") - 1, 0)
    return place
