"""Rows as a venue sent them, to columns in ascending order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Row = Sequence[object]

_LATEST_MS = 2**52
"""Far beyond any bar, and every whole number up to here is exact in a float64."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that did not become a bar, as it came, and why. `ts` is None when it cannot be read."""

    reason: str
    ts: int | None
    row: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Normalized:
    """Every row of a page: as a bar, ascending and not judged yet, or as one that has no columns.

    `origin` is each bar's place in the page. Bars of the same time keep the page's order.
    """

    batch: CandleBatch
    origin: NDArray[np.int64]
    unreadable: tuple[Rejected, ...]


def normalize(rows: Sequence[Row]) -> Normalized:
    """Turns (ts, o, h, l, c, v[, t]) rows into columns. Accepts None, NaN and numbers as text."""
    table, origin, unreadable = _columns(rows)
    ts = table[:, 0]
    # A comparison with NaN is false, so this also sends away rows without a time.
    timed = (ts >= 0) & (ts <= _LATEST_MS) & (ts == np.floor(ts))
    if not timed.all():
        lost = origin[~timed].tolist()
        unreadable += [Rejected("no_time", None, tuple(rows[at])) for at in lost]
        table, origin = table[timed], origin[timed]
    order = np.argsort(table[:, 0], kind="stable")
    table, origin = table[order], origin[order]
    return Normalized(CandleBatch.of_columns(table), origin, tuple(unreadable))


def _columns(
    rows: Sequence[Row],
) -> tuple[NDArray[np.float64], NDArray[np.int64], list[Rejected]]:
    """A table of seven float columns, where each line stood, and the rows that fit in no table."""
    origin = np.arange(len(rows), dtype=np.int64)
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return _columns_one_by_one(rows)
    if table.ndim == 2 and table.shape[1] in (6, 7):
        return _seven(table), origin, []
    if not len(rows):
        return np.empty((0, 7)), origin, []
    return _columns_one_by_one(rows)


def _columns_one_by_one(
    rows: Sequence[Row],
) -> tuple[NDArray[np.float64], NDArray[np.int64], list[Rejected]]:
    """The slow way, for pages in which at least one row is broken."""
    good: list[NDArray[np.float64]] = []
    origin: list[int] = []
    unreadable: list[Rejected] = []
    for at, row in enumerate(rows):
        try:
            line = np.array([row], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            line = np.empty((0, 0))
        if line.ndim == 2 and line.shape[1] in (6, 7):
            good.append(_seven(line))
            origin.append(at)
        else:
            unreadable.append(Rejected("unreadable", _time_of(row), _as_tuple(row)))
    table = np.concatenate(good) if good else np.empty((0, 7))
    return table, np.array(origin, dtype=np.int64), unreadable


def _seven(table: NDArray[np.float64]) -> NDArray[np.float64]:
    if table.shape[1] == 7:
        return table
    return np.column_stack([table, np.full(len(table), np.nan)])


def _time_of(row: object) -> int | None:
    if not isinstance(row, list | tuple) or not row:
        return None
    try:
        ts = float(row[0])
    except (TypeError, ValueError, OverflowError):
        return None
    return int(ts) if 0 <= ts <= _LATEST_MS and ts == int(ts) else None


def _as_tuple(row: object) -> tuple[object, ...]:
    return tuple(row) if isinstance(row, list | tuple) else (row,)
