"""How much of a series is stored: bars, slots without a trade, missing and unconfirmed slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from collector.market.interval import Interval, covers, subtract, with_bars
from collector.reports.expected import whole_slots
from collector.reports.missing_runs import MissingRuns
from collector.reports.windows import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.market.series import Series
    from collector.reports.expected import Expected
    from collector.store.store import Store

MOST_UNCONFIRMED = 20
"""Unconfirmed ranges of a series that are remembered one by one."""
_COLUMNS = ("ts", "is_gap", "gap_reason")


@dataclass(frozen=True, slots=True)
class UnconfirmedRange:
    """Slots that an exchange reported as empty, and that are not believed yet."""

    span: Interval
    asked_again_ms: int | None
    """When a job asks about it again; None while its job is paused."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The calendar of one series, counted: every slot of it is present, no_trade, missing or
    unconfirmed, and these four add up to `expected`.
    """

    series: Series
    calendar: Interval | None
    """From the requested beginning of the series to the last bar that closed (see `Expected`)."""
    first_ts: int | None
    last_ts: int | None
    rows: int
    expected: int
    """The slots of the calendar."""
    present: int
    partial: int
    """Of those present, the bars that lack some of their minutes."""
    no_trade: int
    """An answer covered the slot and had no bar."""
    missing: int
    """No answer covers the slot, and it is not unconfirmed."""
    head_missing: int
    """Of those missing, the slots before the first row that is stored."""
    tail_missing: int
    """Of those missing, the slots behind the last row that is stored."""
    lag_bars: int
    """How far a market that trades is behind."""
    longest_gap_bars: int
    worst: tuple[Interval, ...]
    """The longest missing ranges, longest first."""
    unconfirmed: int
    """The exchange reported the slot as empty at most three days ago; a job asks again. Readers get
    `missing`, because no answer covers it yet."""
    unconfirmed_ranges: tuple[UnconfirmedRange, ...]
    """The longest unconfirmed ranges, longest first."""

    @property
    def gaps_pct(self) -> float:
        """The missing share, 0 to 1, as `quality.max_gap_pct` is: 0.0001 is 0.01%."""
        return self.missing / self.expected if self.expected else 0.0


class CoverageCount:
    """Counts a series window by window. `covered` is what answers cover, ascending and disjoint."""

    def __init__(self, series: Series, expected: Expected, covered: Sequence[Interval]) -> None:
        self._series = series
        self._expected = expected
        self._covered = covered
        self._silent = expected.unconfirmed_slots(series.timeframe)
        self._runs = MissingRuns(series.timeframe)
        self._unconfirmed = MissingRuns(series.timeframe, MOST_UNCONFIRMED)
        self._start = expected.start(series.timeframe, covered[0].from_ms if covered else None)
        self._first_ts: int | None = None
        self._last_ts: int | None = None
        self._rows = self._partial = self._no_trade = 0
        self._missing = self._head_missing = self._tail_missing = self._unconfirmed_slots = 0

    def add(self, table: pa.Table) -> None:
        """The next rows; needs `ts`, `is_gap` and `gap_reason`."""
        if not len(table):
            return
        ts: NDArray[np.int64] = table["ts"].to_numpy()
        if self._first_ts is None:
            self._first_ts = int(ts[0])
            self._add_head(self._first_ts)
        self._last_ts = int(ts[-1])
        self._rows += len(ts)
        if not pc.any(table["is_gap"]).as_py():
            return

        def has_reason(reason: str) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = (
                pc.equal(table["gap_reason"], reason).fill_null(False).to_numpy()
            )
            return found

        open_ts = ts[has_reason("missing")]
        silent = covers(self._silent, open_ts)
        missing, unconfirmed = open_ts[~silent], open_ts[silent]
        self._no_trade += int(has_reason("no_trade").sum())
        self._partial += int(has_reason("partial").sum())
        self._missing += len(missing)
        self._runs.add(missing)
        self._unconfirmed_slots += len(unconfirmed)
        self._unconfirmed.add(unconfirmed)

    def counted(self) -> Coverage:
        """All of it; no more rows after this."""
        calendar = self._closed()
        expected = 0 if calendar is None else self._bars(calendar)
        missing = self._missing + self._head_missing + self._tail_missing
        worst = self._runs.longest()
        return Coverage(
            series=self._series,
            calendar=calendar,
            first_ts=self._first_ts,
            last_ts=self._last_ts,
            rows=self._rows,
            expected=expected,
            present=expected - self._no_trade - missing - self._unconfirmed_slots,
            partial=self._partial,
            no_trade=self._no_trade,
            missing=missing,
            head_missing=self._head_missing,
            tail_missing=self._tail_missing,
            lag_bars=self._tail_missing if self._expected.is_listed else 0,
            longest_gap_bars=self._runs.bars(worst[0]) if worst else 0,
            worst=worst,
            unconfirmed=self._unconfirmed_slots,
            unconfirmed_ranges=tuple(
                UnconfirmedRange(each, self._expected.asked_again_ms(each))
                for each in self._unconfirmed.longest()
            ),
        )

    def _closed(self) -> Interval | None:
        """Counts what lies behind the last row; returns the calendar."""
        frame = self._series.timeframe
        if self._last_ts is not None and self._start is not None:
            stored_end = frame.end(self._last_ts)
            end = self._expected.end(frame, stored_end)
            if end > stored_end:
                self._tail_missing = self._add_open([Interval(stored_end, end)])
            return Interval(self._start, end)
        if self._start is None:
            return None
        # Not a single bar: all that is expected lies before the first.
        asked_end = frame.floor(self._covered[-1].to_ms) if self._covered else self._start
        end = self._expected.end(frame, asked_end)
        self._add_head(end)
        return Interval(self._start, end) if self._start < end else None

    def _add_head(self, until_ms: int) -> None:
        """What lies before the first row, where there are no fillers: no close to carry."""
        if self._start is None or self._start >= until_ms:
            self._start = until_ms
            return
        head = Interval(self._start, until_ms)
        uncovered = subtract([head], whole_slots(self._covered, self._series.timeframe))
        self._no_trade += self._bars(head) - sum(map(self._bars, uncovered))
        self._head_missing = self._add_open(uncovered)

    def _add_open(self, uncovered: Sequence[Interval]) -> int:
        """Counts ranges that no answer covers; returns how many of their slots are missing."""
        missing = subtract(uncovered, self._silent)
        unconfirmed = subtract(uncovered, missing)
        self._runs.add_runs(with_bars(missing, self._series.timeframe))
        self._unconfirmed.add_runs(with_bars(unconfirmed, self._series.timeframe))
        self._unconfirmed_slots += sum(map(self._bars, unconfirmed))
        return sum(map(self._bars, missing))

    def _bars(self, interval: Interval) -> int:
        return self._series.timeframe.count(interval.from_ms, interval.to_ms)


def coverage(
    store: Store,
    series: Series,
    expected: Expected,
    on_rows: Callable[[int], None] | None = None,
) -> Coverage:
    """Reads the series once. Waits for the disk: call it in a thread."""
    with store.reading(series) as reading:
        count = CoverageCount(series, expected, reading.covered())
        for table in windows(reading, _COLUMNS):
            count.add(table)
            if on_rows is not None:
                on_rows(len(table))
    return count.counted()
