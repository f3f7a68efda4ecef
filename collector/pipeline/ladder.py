"""Longer bars from a stream of shorter ones, each timeframe from the one below it.

Minutes come in pieces that end anywhere. Each rung keeps the bars of its last window until the
window is full, so that the pieces make the same bars as the whole would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import CandleBatch
from collector.pipeline.resample import divides, reduce_windows, resample
from collector.pipeline.uneven import newest_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe

    Ver = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """Bars with their versions. A bar made of others is as new as the newest of them."""

    batch: CandleBatch
    ver: Ver

    @classmethod
    def nothing(cls) -> Graded:
        return cls(CandleBatch.empty(), np.zeros(0, dtype=np.int32))

    def then(self, other: Graded) -> Graded:
        if not len(self.batch):
            return other
        return Graded(
            CandleBatch.concat([self.batch, other.batch]), np.concatenate((self.ver, other.ver))
        )

    def behind(self, rows: int) -> Graded:
        """Without the first `rows`."""
        return self.take(slice(rows, None))

    def take(self, rows: slice) -> Graded:
        return Graded(self.batch.take(rows), self.ver[rows])


class Ladder:
    """All timeframes above one."""

    def __init__(self, source: Timeframe, targets: Collection[Timeframe]) -> None:
        self._source = source
        self._rungs: list[_Rung] = []
        made = [source]
        for target in sorted(set(targets) - {source}):
            base = max((each for each in made if divides(each, target)), default=None)
            if base is None:
                raise ValueError(f"{target} bars cannot be made of {source} bars")
            self._rungs.append(_Rung(base, target))
            made.append(target)

    def climb(self, piece: Graded) -> dict[Timeframe, Graded]:
        """The next bars of each target that `piece`, which follows the one before, makes full."""
        done = {self._source: piece}
        for rung in self._rungs:
            done[rung.target] = rung.made(done[rung.base])
        del done[self._source]
        return done


class _Rung:
    def __init__(self, base: Timeframe, target: Timeframe) -> None:
        self.base = base
        self.target = target
        self._open = Graded.nothing()

    def made(self, piece: Graded) -> Graded:
        bars = self._open.then(piece)
        longer = resample(bars.batch, self.base, self.target)
        if not len(longer):
            self._open = bars
            return Graded(longer, np.zeros(0, dtype=np.int32))
        inside = (int(longer.ts[0]), self.target.end(int(longer.ts[-1])))
        first, end = np.searchsorted(bars.batch.ts, inside).tolist()
        self._open = bars.behind(end)
        return Graded(longer, self._newest(bars.take(slice(first, end)), longer))

    def _newest(self, bars: Graded, longer: CandleBatch) -> Ver:
        if (bars.ver == 1).all():
            return np.ones(len(longer), dtype=np.int32)  # Hardly a bar is ever corrected.
        if not self.target.is_uniform:
            return newest_of(bars.ver, bars.batch.ts, longer.ts)
        newest = np.empty(len(longer), dtype=np.int32)
        reduce_windows(np.maximum, bars.ver, self.target.ms // self.base.ms, newest)
        return newest
