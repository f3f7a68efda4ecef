"""Longer bars against the minutes they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.series import Series
from collector.market.timeframe import MINUTE
from collector.reports.check import EXAMPLES, Check
from collector.reports.windows import BARS_PER_WINDOW

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.store.store import Store

_COLUMNS = ("ts", "v", "is_gap")
_ROUNDING = 1e-9
"""Sums of floats depend on their order; nothing real is this small."""


def minutes_of(series: Series) -> Series:
    return Series(series.exchange_id, series.symbol, MINUTE)


class MinuteChecks:
    """`volume_sum`: v is the sum of the minutes. `partial_windows`: none lacks a minute unflagged.

    There are no checks for the minutes themselves, where no minutes are stored, and where the
    exchange sent bars of this timeframe, which it may compute differently. Windows whose minutes
    are not all in the calendar are skipped.
    """

    def __init__(self, store: Store, series: Series, *, strict_gaps: bool) -> None:
        self._store = store
        self._timeframe = series.timeframe
        self._minutes = minutes_of(series)
        self._bars = series.timeframe.ms // MINUTE.ms
        longer = series.timeframe > MINUTE and series.timeframe.ms % MINUTE.ms == 0
        names = ("volume_sum", "partial_windows") if strict_gaps else ("volume_sum",)
        made = longer and store.holds(self._minutes) and not store.holds(series)
        self.checks = {name: Check() for name in names} if made else {}

    def add(self, table: pa.Table) -> None:
        """The next rows; needs `ts`, `v` and `is_gap`."""
        if not self.checks:
            return
        rows = max(1, BARS_PER_WINDOW // self._bars)
        for start in range(0, len(table), rows):
            longer = table.slice(start, rows)
            ts = longer["ts"].to_numpy()
            to_ms = self._timeframe.end(int(ts[-1]))
            shorter = self._store.rows(self._minutes, int(ts[0]), to_ms, columns=_COLUMNS)
            if len(shorter):
                self._compare(longer, shorter)

    def _compare(self, longer: pa.Table, shorter: pa.Table) -> None:
        ts: NDArray[np.int64] = longer["ts"].to_numpy()
        minute: NDArray[np.int64] = shorter["ts"].to_numpy()
        opens = self._timeframe.floors(minute)
        at = np.minimum(np.searchsorted(ts, opens), len(ts) - 1)
        inside = ts[at] == opens
        at = at[inside]

        def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(at, values[inside], minlength=len(ts)).astype(np.float64, copy=False)

        bars = self._minutes.timeframe.counts(ts, self._timeframe.ends(ts))
        full = np.bincount(at, minlength=len(ts)) == bars
        v = longer["v"].to_numpy()
        total = summed(shorter["v"].to_numpy())
        wrong = np.flatnonzero(full & ~np.isclose(v, total, rtol=_ROUNDING, atol=_ROUNDING))
        examples = [
            {"ts": int(ts[n]), "v": float(v[n]), "minutes": float(total[n])}
            for n in wrong[:EXAMPLES]
        ]
        self.checks["volume_sum"].note(len(wrong), examples)
        if "partial_windows" in self.checks:
            lacking = summed(shorter["is_gap"].to_numpy().astype(np.float64)) > 0
            unflagged = np.flatnonzero(full & lacking & ~longer["is_gap"].to_numpy())
            self.checks["partial_windows"].note(len(unflagged), ts[unflagged[:EXAMPLES]].tolist())
