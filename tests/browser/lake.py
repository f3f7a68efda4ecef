"""Bars as earlier runs left them: whole days, a hole, minutes without a trade, and a correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.durations import DAY_MS, MINUTE_MS
from collector.market.answer import Rejected
from collector.market.candles import CandleBatch
from collector.market.interval import Interval, subtract
from collector.market.series import Series
from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

SOL = Series.of("simulated", "SOL/USDT", "1m")
DAYS = 20
HOLE_MINUTES, MENDABLE_MINUTES, QUIET_MINUTES = 90, 40, 30


@dataclass(frozen=True)
class WrittenLake:
    """SOL/USDT 1m of the last days, with two holes that no job owns: one of them is mended."""

    root: Path
    now_ms: int

    @property
    def first_ms(self) -> int:
        return self.now_ms - self.now_ms % DAY_MS - DAYS * DAY_MS

    @property
    def hole(self) -> Interval:
        begin = self.first_ms + 3 * DAY_MS + 600 * MINUTE_MS
        return Interval(begin, begin + HOLE_MINUTES * MINUTE_MS)

    @property
    def mendable(self) -> Interval:
        begin = self.first_ms + 6 * DAY_MS
        return Interval(begin, begin + MENDABLE_MINUTES * MINUTE_MS)

    @property
    def quiet(self) -> Interval:
        """Answers cover it and have no bar."""
        begin = self.hole.to_ms + 60 * MINUTE_MS
        return Interval(begin, begin + QUIET_MINUTES * MINUTE_MS)

    @property
    def corrected_ms(self) -> int:
        """A bar that is known in two versions."""
        return self.quiet.to_ms + 60 * MINUTE_MS

    @property
    def corrected_at(self) -> int:
        """When the second version became known."""
        return self.now_ms - DAY_MS

    def write(self) -> None:
        store, end = Store(self.root), self.now_ms - self.now_ms % MINUTE_MS
        whole = Interval(self.first_ms, end)
        for each in subtract([whole], [self.hole, self.mendable]):
            self._append(store, each.from_ms, each.to_ms, known_at=self.corrected_at - DAY_MS)
        bar = (self.corrected_ms, 77.0, 78.0, 76.0, 77.5, 123.0, 9_500.0)
        later = Interval(self.corrected_ms, self.corrected_ms + MINUTE_MS)
        batch = CandleBatch.of([bar])
        store.append_page(SOL, batch, later, fence=1, known_at=self.corrected_at)
        row = (self.corrected_ms, 5.0, 4.0, 6.0, 5.0, 1.0)
        bad = Rejected("high_below_low", self.corrected_ms, row)
        store.quarantine(SOL, [bad], fence=1, known_at=self.corrected_at)

    def _append(self, store: Store, begin: int, until: int, known_at: int) -> None:
        rows = [
            self._bar(ts)
            for ts in range(begin, until, MINUTE_MS)
            if not self.quiet.from_ms <= ts < self.quiet.to_ms
        ]
        batch, covered = CandleBatch.of(rows), Interval(begin, until)
        store.append_page(SOL, batch, covered, fence=1, known_at=known_at)

    def _bar(self, ts: int) -> tuple[float, ...]:
        """A price that wanders, the same in every run."""
        step = ts // MINUTE_MS
        base = 60 + (step % 997) / 100 + (step % 61) / 50
        swing = (step * 7 % 11) / 20
        close = base + ((step % 7) - 3) / 10
        low = min(base, close) - swing
        return (ts, base, max(base, close) + swing, low, close, 10.0 + step % 50, 600.0)
