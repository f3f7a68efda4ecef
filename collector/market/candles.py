"""Bars by the column."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# What a row is. A filler stands in an empty slot; a partial bar is a resampled one that was made
# although some of its minutes are gaps. Either is a gap to a reader.
BAR = 0
NO_TRADE = 1
MISSING = 2
PARTIAL = 4
_REASON = NO_TRADE | MISSING

CANDLE_SCHEMA = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("o", pa.float64(), nullable=False),
        pa.field("h", pa.float64(), nullable=False),
        pa.field("l", pa.float64(), nullable=False),
        pa.field("c", pa.float64(), nullable=False),
        pa.field("v", pa.float64(), nullable=False),
        pa.field("t", pa.float64()),
        pa.field("ver", pa.int32(), nullable=False),
        pa.field("is_gap", pa.bool_(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("gap_reason", pa.string()),
    ]
)
"""The columns every reader of candles gets, in order."""

_REASON_NAMES = pa.array(["no_trade", "missing"])


@dataclass(frozen=True, slots=True, eq=False)
class CandleBatch:
    """Bars as equally long columns: `ts` is the opening time in UTC ms, `t` NaN where unknown.

    `gap` says of each row what it is: BAR, NO_TRADE, MISSING, or PARTIAL with the reason beside it.
    """

    ts: Ints
    o: Floats
    h: Floats
    l: Floats  # noqa: E741 - the seed's name of the column
    c: Floats
    v: Floats
    t: Floats
    gap: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def empty(cls) -> CandleBatch:
        return cls.of([])

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> CandleBatch:
        """Bars from good rows: (ts, o, h, l, c, v) or (ts, o, h, l, c, v, t)."""
        if not len(rows):
            return cls.of_columns(np.empty((0, 7)))
        table = np.array(rows, dtype=np.float64)
        if table.shape[1] == 6:
            table = np.column_stack([table, np.full(len(table), np.nan)])
        return cls.of_columns(table)

    @classmethod
    def of_columns(cls, table: Floats) -> CandleBatch:
        """Bars from a table of seven columns, ts first and t last."""
        # Adding zero turns -0.0 into 0.0, so that equal bars are equal bit for bit.
        o, h, low, c, v, t = (np.ascontiguousarray(table[:, at]) + 0.0 for at in range(1, 7))
        gap = np.zeros(len(table), dtype=np.int8)
        return cls(table[:, 0].astype(np.int64), o, h, low, c, v, t, gap)

    @classmethod
    def concat(cls, batches: Sequence[CandleBatch]) -> CandleBatch:
        if not batches:
            return cls.empty()
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(b, name) for b in batches]) for name in names))

    def take(self, rows: NDArray[Any] | slice) -> CandleBatch:
        """The rows a mask, an index or a slice picks."""
        return CandleBatch(
            self.ts[rows],
            self.o[rows],
            self.h[rows],
            self.l[rows],
            self.c[rows],
            self.v[rows],
            self.t[rows],
            self.gap[rows],
        )

    @property
    def filler(self) -> NDArray[np.bool_]:
        """Rows that only hold a place: no bar was ever there."""
        filler: NDArray[np.bool_] = (self.gap == NO_TRADE) | (self.gap == MISSING)
        return filler

    def values(self) -> tuple[NDArray[Any], ...]:
        """The columns that make a bar the same bar or another version of it."""
        return (self.o, self.h, self.l, self.c, self.v, self.t, self.gap)

    def to_arrow(self, source: str | pa.Array, ver: NDArray[np.int32] | None = None) -> pa.Table:
        """A table with CANDLE_SCHEMA. `ver` is 1 throughout unless it is given."""
        names = pa.repeat(source, len(self)) if isinstance(source, str) else source
        versions = np.ones(len(self), dtype=np.int32) if ver is None else ver
        columns = [
            pa.array(self.ts),
            *(pa.array(each) for each in (self.o, self.h, self.l, self.c, self.v)),
            pa.array(self.t, mask=np.isnan(self.t)),
            pa.array(versions),
            pa.array(self.gap != BAR),
            names,
            _reason_column(self.gap),
        ]
        return pa.Table.from_arrays(columns, schema=CANDLE_SCHEMA)

    @classmethod
    def from_arrow(cls, table: pa.Table, bars: NDArray[np.bool_] | None = None) -> CandleBatch:
        """The batch behind a table with CANDLE_SCHEMA's columns.

        A gap row is a filler, except where `bars` is true: those are partial bars.
        """
        reason = table["gap_reason"].combine_chunks()
        gap = _reason_codes(table["is_gap"].to_numpy(), reason)
        if bars is not None:
            gap[bars & (gap != BAR)] |= PARTIAL
        o, h, low, c, v, t = (table[name].to_numpy() for name in ("o", "h", "l", "c", "v", "t"))
        return cls(table["ts"].to_numpy(), o, h, low, c, v, t, gap)


def _reason_column(gap: NDArray[np.int8]) -> pa.Array:
    if not gap.any():
        return pa.nulls(len(gap), pa.string())
    codes = (gap & _REASON) - 1
    indices = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, _REASON_NAMES).cast(pa.string())


def _reason_codes(is_gap: NDArray[np.bool_], reason: pa.Array) -> NDArray[np.int8]:
    gap = np.zeros(len(is_gap), dtype=np.int8)
    if is_gap.any():
        gap[is_gap] = MISSING
        no_trade = pc.equal(reason, "no_trade").fill_null(False)
        gap[no_trade.to_numpy(zero_copy_only=False)] = NO_TRADE
    return gap
