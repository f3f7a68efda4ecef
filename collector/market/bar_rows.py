"""Bars as an exchange sent them: in columns, with the odd rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Row = Sequence[Any]

LATEST_MS = 2**52
"""Far beyond any bar, and every whole number up to here is exact in a float64."""


@dataclass(frozen=True, slots=True, eq=False)
class BarRows(Sequence[Row]):
    """The rows of an answer. It reads like a tuple of rows, oldest first.

    batch  rows of plain numbers, ascending by time; those of one time in the order they were sent
    odd    every other row, as it was sent, ascending by time; those without a time are last
    """

    batch: CandleBatch
    odd: tuple[Row, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row]) -> BarRows:
        """From (ts, o, h, l, c, v[, t]) rows in any order. Numbers may be text."""
        if isinstance(rows, BarRows):
            return rows
        table, fits, odd = _table(rows)
        plain = _plain(table)
        if not plain.all():
            odd += [rows[at] for at in fits[~plain].tolist()]
            table = table[plain]
        return cls.of_table(table, odd)

    @classmethod
    def of_table(cls, table: Floats, odd: Sequence[Row] = ()) -> BarRows:
        """From a table of seven columns of plain numbers, in any order."""
        return cls.of_bars(CandleBatch.of_columns(table), odd)

    @classmethod
    def of_bars(cls, batch: CandleBatch, odd: Sequence[Row] = ()) -> BarRows:
        """From bars of plain numbers, in any order."""
        ts = batch.ts
        if (ts[1:] < ts[:-1]).any():
            batch = batch.take(np.argsort(ts, kind="stable"))
        return cls(batch, tuple(sorted(odd, key=_last_without_time)))

    @property
    def times(self) -> NDArray[np.int64]:
        """When the rows open, ascending; those without a time are left out."""
        known = [ts for row in self.odd if (ts := time_of(row)) is not None]
        if not known:
            return self.batch.ts
        return np.sort(np.concatenate([self.batch.ts, np.array(known, dtype=np.int64)]))

    def __len__(self) -> int:
        return len(self.batch) + len(self.odd)

    def __iter__(self) -> Iterator[Row]:
        rows: list[Row] = rows_of(self.batch)
        return iter(sorted([*rows, *self.odd], key=_last_without_time) if self.odd else rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment] # it is compared by its arrays


def rows_of(batch: CandleBatch) -> list[Row]:
    """Bars as rows: (ts, o, h, l, c, v, t), t None where it is not known."""
    columns = (batch.ts, batch.o, batch.h, batch.l, batch.c, batch.v)
    turnover = [None if t != t else t for t in batch.t.tolist()]
    return list(zip(*(column.tolist() for column in columns), turnover, strict=True))


def time_of(row: Any) -> int | None:
    """When a row opens; None when it has no valid time."""
    if not isinstance(row, list | tuple) or not row:
        return None
    try:
        ts = float(row[0])
    except (TypeError, ValueError, OverflowError):
        return None
    return int(ts) if 0 <= ts <= LATEST_MS and ts == int(ts) else None


def line_of(row: Row) -> Floats | None:
    """A table of seven columns and this row alone; None when it does not fit."""
    try:
        line = np.array([row], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return _seven(line) if line.ndim == 2 and line.shape[1] in (6, 7) else None


def _last_without_time(row: Row) -> float:
    ts = time_of(row)
    return LATEST_MS + 1 if ts is None else ts


def _table(rows: Sequence[Row]) -> tuple[Floats, NDArray[np.int64], list[Row]]:
    """A table of seven columns, the place of each line, and the rows that do not fit."""
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim == 2 and table.shape[1] in (6, 7):
        return _seven(table), np.arange(len(rows)), []
    lines = [line_of(row) for row in rows]
    good = [line for line in lines if line is not None]
    fits = [at for at, line in enumerate(lines) if line is not None]
    odd = [row for row, line in zip(rows, lines, strict=True) if line is None]
    return np.concatenate([np.empty((0, 7)), *good]), np.array(fits, dtype=np.int64), odd


def _plain(table: Floats) -> NDArray[np.bool_]:
    """The rows with a time and five finite numbers; the turnover may be unknown."""
    ts = table[:, 0]
    # A comparison with NaN is false, so this is also false for rows without a time.
    timed = (ts >= 0) & (ts <= LATEST_MS) & (ts == np.floor(ts))
    plain: NDArray[np.bool_] = timed & np.isfinite(table[:, 1:6]).all(axis=1)
    return plain & ~np.isinf(table[:, 6])


def _seven(table: Floats) -> Floats:
    if table.shape[1] == 7:
        return table
    return np.column_stack([table, np.full(len(table), np.nan)])
