"""What must hold for every row: checked by the column, window after window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import CANDLE_SCHEMA
from collector.reports.check import EXAMPLES, Check

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.market.series import Series

_PRICES = ("o", "h", "l", "c")


class RowChecks:
    """types, finite, monotonic, step, future, ohlc and volume of one series."""

    def __init__(self, series: Series, now_ms: int) -> None:
        self._timeframe = series.timeframe
        self._now_ms = now_ms
        self._last_ts: int | None = None
        names = ("types", "finite", "monotonic", "step", "future", "ohlc", "volume")
        self.checks = {name: Check() for name in names}

    def add(self, table: pa.Table) -> None:
        """The next rows, with all columns of CANDLE_SCHEMA."""
        if not self._typed(table) or not len(table):
            return
        ts: NDArray[np.int64] = table["ts"].to_numpy()
        o, h, low, c = (table[name].to_numpy() for name in _PRICES)
        v = table["v"].to_numpy()
        t = table["t"].to_numpy()
        finite = np.isfinite(v)
        for column in (o, h, low, c):
            finite &= np.isfinite(column)
        self._note("finite", ts, ~finite | np.isinf(t))
        self._note("ohlc", ts, (low > np.minimum(o, c)) | (np.maximum(o, c) > h))
        self._note("volume", ts, (v < 0) | (t < 0))
        self._note("future", ts, ts > self._now_ms)
        self._in_order(ts)

    def _typed(self, table: pa.Table) -> bool:
        wrong = [
            f"{field.name}: {table.schema.field(field.name).type}, not {field.type}"
            for field in CANDLE_SCHEMA
            if table.schema.field(field.name).type != field.type
        ]
        nulls = [
            f"{field.name}: {table[field.name].null_count} nulls"
            for field in CANDLE_SCHEMA
            if not field.nullable and table[field.name].null_count
        ]
        self.checks["types"].note(len(wrong) + len(nulls), wrong + nulls)
        return not wrong and not nulls

    def _in_order(self, ts: NDArray[np.int64]) -> None:
        first = int(ts[0])
        last = self._timeframe.shift(first, -1) if self._last_ts is None else self._last_ts
        before = np.concatenate(([last], ts[:-1]))
        self._last_ts = int(ts[-1])
        self._note("monotonic", ts, ts <= before)
        off_grid = self._timeframe.floors(ts) != ts
        skips = self._timeframe.skips(np.concatenate(([last], ts)))
        self._note("step", ts, off_grid | ((ts > before) & skips))

    def _note(self, name: str, ts: NDArray[np.int64], bad: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(bad))
        if count:
            self.checks[name].note(count, ts[np.flatnonzero(bad)[:EXAMPLES]].tolist())
