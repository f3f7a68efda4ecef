"""One answer, ready to be made durable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.interval import Interval, covers
from collector.store.coverage import aligned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.market.candles import CandleBatch
    from collector.market.series import Series


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """The closed bars of one answer about one series, and the slots that the answer covers.

    series    whose bars they are batch     bars on the timeframe's grid, ascending, one a time, no
    fillers covered   disjoint intervals of slots; every bar lies in one fence     of the lease
    under which the answer came; kept for readers of the files known_at  when the answer came, on
    the one clock (MongoDB's); decides what is newer source    where the answer came from
    """

    series: Series
    batch: CandleBatch
    covered: tuple[Interval, ...]
    fence: int
    known_at: int
    source: str

    @classmethod
    def of(
        cls,
        series: Series,
        batch: CandleBatch,
        coverage: Interval | Iterable[Interval],
        *,
        fence: int,
        known_at: int,
        source: str | None = None,
    ) -> Page:
        """Puts coverage on the grid and leaves out fillers, which follow from the ledger.

        ValueError for bars that no valid answer has: off the grid, repeated, not covered.
        """
        filler = batch.filler
        bars = batch.take(~filler) if filler.any() else batch
        covered = aligned(coverage, series.timeframe)
        ts = bars.ts
        in_line = series.timeframe.are_in_line(ts)
        if not in_line and (ts[1:] <= ts[:-1]).any():
            raise ValueError(f"{series}: bars must ascend, one a time")
        if not in_line and (series.timeframe.floors(ts) != ts).any():
            raise ValueError(f"{series}: bars must open on the timeframe's grid")
        if not covers(covered, ts).all():
            raise ValueError(f"{series}: every bar must lie in what the answer covers")
        if not bars.extra.keys() <= set(series.extra):
            raise ValueError(f"{series}: no such columns as {sorted(bars.extra)}")
        if fence < 0 or known_at < 0 or (covered and covered[0].from_ms < 0):
            raise ValueError(f"{series}: fence, known_at and times cannot be negative")
        return cls(series, bars, covered, fence, known_at, source or series.exchange_id)

    @property
    def hull(self) -> Interval:
        """The shortest interval around everything the page covers. It covers something."""
        return Interval(self.covered[0].from_ms, self.covered[-1].to_ms)
