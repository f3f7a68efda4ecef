"""Rows as a venue sent them, to columns in ascending order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from collector.market.bar_rows import BarRows, line_of, rows_of, time_of
from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that did not become a bar, as it came, and why. `ts` is None when it cannot be read."""

    reason: str
    ts: int | None
    row: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Normalized:
    """Every row of a page: as a bar, ascending and not validated yet, or as an unreadable row.

    `odd` are the bars that hold more than plain numbers, as they were sent, by their place in the
    batch. Bars of the same time keep the page's order.
    """

    batch: CandleBatch
    unreadable: tuple[Rejected, ...] = ()
    odd: Mapping[int, Row] = field(default_factory=dict)

    def row(self, at: int) -> tuple[object, ...]:
        """A bar as it was sent."""
        if at in self.odd:
            return tuple(self.odd[at])
        return tuple(rows_of(self.batch.take(slice(at, at + 1)))[0])


def normalize(rows: Sequence[Row]) -> Normalized:
    """Turns (ts, o, h, l, c, v[, t]) rows into columns. Accepts None, NaN and numbers as text."""
    sent = BarRows.of(rows)
    if not sent.odd:
        return Normalized(sent.batch)
    lines, odd, unreadable = [], [], []
    for row in sent.odd:
        line, ts = line_of(row), time_of(row)
        if line is None:
            unreadable.append(Rejected("unreadable", ts, _as_tuple(row)))
        elif ts is None:
            unreadable.append(Rejected("no_time", None, tuple(row)))
        else:
            lines.append(line)
            odd.append(row)
    table = np.concatenate([np.empty((0, 7)), *lines])
    batch = CandleBatch.concat([sent.batch, CandleBatch.of_columns(table)])
    order = np.argsort(batch.ts, kind="stable")
    places = {
        at: odd[origin - len(sent.batch)]
        for at, origin in enumerate(order.tolist())
        if origin >= len(sent.batch)
    }
    return Normalized(batch.take(order), tuple(unreadable), places)


def _as_tuple(row: object) -> tuple[object, ...]:
    return tuple(row) if isinstance(row, list | tuple) else (row,)
