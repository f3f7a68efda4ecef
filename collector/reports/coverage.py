"""How much of a series is there: bars, slots without a trade, and what is owed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from collector.reports.missing_runs import MissingRuns
from collector.reports.windows import windows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.store.store import Store

_COLUMNS = ("ts", "is_gap", "gap_reason")


@dataclass(frozen=True, slots=True)
class Coverage:
    """The calendar of one series, counted.

    `expected` slots, from the first bar to the end of what was asked for, are each `present`,
    `no_trade` (an answer covered them and had no bar) or `missing`. A longer bar that lacks a
    minute counts as what that minute is. `worst` are the longest missing stretches, longest first.
    """

    series: Series
    first_ts: int | None
    last_ts: int | None
    expected: int
    present: int
    no_trade: int
    missing: int
    longest_gap_bars: int
    worst: tuple[Interval, ...]

    @property
    def gaps_pct(self) -> float:
        """The missing share, 0 to 1, as `quality.max_gap_pct` is: 0.0001 is 0.01%."""
        return self.missing / self.expected if self.expected else 0.0

    @property
    def end_ms(self) -> int:
        """Where the calendar ends; 0 when there is none."""
        return 0 if self.last_ts is None else self.last_ts + self.series.timeframe.ms

    def lag_bars(self, now_ms: int) -> int:
        """Bars that have closed since the calendar's end: late, which is not missing."""
        timeframe = self.series.timeframe
        if self.last_ts is None:
            return 0
        return max(0, (timeframe.floor(now_ms) - self.end_ms) // timeframe.ms)


class CoverageCount:
    """Counts a series window by window."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._runs = MissingRuns(series.timeframe.ms)
        self._first_ts: int | None = None
        self._last_ts: int | None = None
        self._rows = self._no_trade = self._missing = 0

    def add(self, table: pa.Table) -> None:
        """The next rows; needs `ts`, `is_gap` and `gap_reason`."""
        if not len(table):
            return
        ts: NDArray[np.int64] = table["ts"].to_numpy()
        self._first_ts = int(ts[0]) if self._first_ts is None else self._first_ts
        self._last_ts = int(ts[-1])
        self._rows += len(ts)
        if not pc.any(table["is_gap"]).as_py():
            return
        is_gap = table["is_gap"].to_numpy()
        no_trade = pc.equal(table["gap_reason"], "no_trade").fill_null(False).to_numpy() & is_gap
        missing = is_gap & ~no_trade
        self._no_trade += int(no_trade.sum())
        self._missing += int(missing.sum())
        self._runs.add(ts[missing])

    def counted(self) -> Coverage:
        worst = self._runs.longest()
        return Coverage(
            series=self._series,
            first_ts=self._first_ts,
            last_ts=self._last_ts,
            expected=self._rows,
            present=self._rows - self._no_trade - self._missing,
            no_trade=self._no_trade,
            missing=self._missing,
            longest_gap_bars=self._runs.bars(worst[0]) if worst else 0,
            worst=worst,
        )


def coverage(
    store: Store, series: Series, on_rows: Callable[[int], None] | None = None
) -> Coverage:
    """Reads the series once. Waits for the disk: call it in a thread."""
    count = CoverageCount(series)
    for table in windows(store, series, _COLUMNS):
        count.add(table)
        if on_rows is not None:
            on_rows(len(table))
    return count.counted()
