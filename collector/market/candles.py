"""Bars by the column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# The kinds of rows. A filler (NO_TRADE, MISSING) is in an empty slot; a PARTIAL bar is a resampled
# one that was made although some of its minutes are gaps. Both have `is_gap`, and the name here is
# the `gap_reason`.
BAR = 0
NO_TRADE = 1
MISSING = 2
PARTIAL = 3

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


def candle_schema(extra: Sequence[str]) -> pa.Schema:
    """The same with an exchange's further columns behind them; null where unknown."""
    if not extra:
        return CANDLE_SCHEMA
    return pa.schema([*CANDLE_SCHEMA, *(pa.field(name, pa.float64()) for name in extra)])


_COLUMNS = ("ts", "o", "h", "l", "c", "v", "t", "gap")
_REASON_NAMES = pa.array(["no_trade", "missing", "partial"])


@dataclass(frozen=True, slots=True, eq=False)
class CandleBatch:
    """Bars as equally long columns: `ts` is the opening time in UTC ms, `t` NaN where unknown.

    `gap` is the kind of each row: BAR, NO_TRADE, MISSING or PARTIAL. `extra` are an exchange's
    further columns by name, NaN where unknown; a filler has none.
    """

    ts: Ints
    o: Floats
    h: Floats
    l: Floats  # noqa: E741 - the public name of the column
    c: Floats
    v: Floats
    t: Floats
    gap: NDArray[np.int8]
    extra: Mapping[str, Floats] = field(default_factory=dict)

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
    def of_columns(
        cls, table: Floats, places: Sequence[int | None] = range(7), scale: int = 1
    ) -> CandleBatch:
        """Bars from the columns of a table: where ts, o, h, l, c, v and t are, None for no such.

        `scale` makes milliseconds of the table's times.
        """
        # Adding zero turns -0.0 into 0.0, so that equal bars are equal bit for bit.
        o, h, low, c, v, t = (
            np.full(len(table), np.nan) if at is None else table[:, at] + 0.0 for at in places[1:]
        )
        ts = table[:, places[0]].astype(np.int64)
        gap = np.zeros(len(table), dtype=np.int8)
        return cls(ts * scale if scale != 1 else ts, o, h, low, c, v, t, gap)

    @classmethod
    def concat(cls, batches: Sequence[CandleBatch]) -> CandleBatch:
        if not batches:
            return cls.empty()
        columns = {n: np.concatenate([getattr(b, n) for b in batches]) for n in _COLUMNS}
        names = dict.fromkeys(name for each in batches for name in each.extra)
        extra = {n: np.concatenate([each.column(n) for each in batches]) for n in names}
        return cls(**columns, extra=extra)

    def with_extra(self, extra: Mapping[str, Floats]) -> CandleBatch:
        """The same bars with further columns, each as long as they are."""
        if any(len(column) != len(self) for column in extra.values()):
            raise ValueError("a further column is not as long as the bars")
        clean = {n: np.asarray(column, dtype=np.float64) + 0.0 for n, column in extra.items()}
        return replace(self, extra=clean)

    def column(self, name: str) -> Floats:
        """A further column; unknown throughout when these bars have none of that name."""
        found = self.extra.get(name)
        return np.full(len(self), np.nan) if found is None else found

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
            {name: column[rows] for name, column in self.extra.items()},
        )

    def only(self, mask: NDArray[np.bool_]) -> CandleBatch:
        """The rows of a mask. Nothing is copied when that is all or none of them."""
        if mask.all():
            return self
        return self.take(mask if mask.any() else slice(0))

    @property
    def filler(self) -> NDArray[np.bool_]:
        """Rows that only fill a slot: there was never a bar."""
        filler: NDArray[np.bool_] = (self.gap == NO_TRADE) | (self.gap == MISSING)
        return filler

    def values(self) -> tuple[NDArray[Any], ...]:
        """The columns that make a bar the same bar or another version of it."""
        return (self.o, self.h, self.l, self.c, self.v, self.t, self.gap)

    def to_arrow(
        self,
        source: str | pa.Array,
        ver: NDArray[np.int32] | None = None,
        extra: Sequence[str] = (),
    ) -> pa.Table:
        """A table with CANDLE_SCHEMA and the `extra` columns. `ver` is 1 unless it is given."""
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
        further = [self.column(name) for name in extra]
        columns += [pa.array(each, mask=np.isnan(each)) for each in further]
        return pa.Table.from_arrays(columns, schema=candle_schema(extra))

    @classmethod
    def from_arrow(cls, table: pa.Table, extra: Sequence[str] = ()) -> CandleBatch:
        """The batch behind a table with CANDLE_SCHEMA's columns, and those of `extra`."""
        gap = _reason_codes(table["is_gap"].to_numpy(), table["gap_reason"].combine_chunks())
        o, h, low, c, v, t = (table[name].to_numpy() for name in ("o", "h", "l", "c", "v", "t"))
        further = {name: table[name].to_numpy() for name in extra}
        return cls(table["ts"].to_numpy(), o, h, low, c, v, t, gap, further)


def bars_of(table: pa.Table) -> pa.Table:
    """The rows of a table with CANDLE_SCHEMA that are bars, whole or partial: no fillers."""
    whole = pc.invert(table["is_gap"])
    return table.filter(pc.or_(whole, pc.equal(table["gap_reason"], "partial").fill_null(False)))


def _reason_column(gap: NDArray[np.int8]) -> pa.Array:
    if not gap.any():
        return pa.nulls(len(gap), pa.string())
    indices = pa.array(gap - np.int8(1), mask=gap == BAR)
    return pa.DictionaryArray.from_arrays(indices, _REASON_NAMES).cast(pa.string())


def _reason_codes(is_gap: NDArray[np.bool_], reason: pa.Array) -> NDArray[np.int8]:
    gap = np.zeros(len(is_gap), dtype=np.int8)
    if is_gap.any():
        found = pc.index_in(reason, value_set=_REASON_NAMES).fill_null(MISSING - 1)
        gap[is_gap] = found.to_numpy(zero_copy_only=False)[is_gap] + 1
    return gap
