"""Buckets of one pair by the column, ascending, and how two sets of them become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.history import uint256
from collector.history.bucket import Bucket
from collector.history.refusal import SumOverflow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from collector.history.uint256 import Wide

    Ints = NDArray[np.int64]

INTS = ("ts", "first_ts", "last_ts", "trades")
WIDES = ("first", "high", "low", "close", "sum_base", "sum_quote")


@dataclass(frozen=True, slots=True, eq=False)
class BucketColumns:
    """`ints` holds a row for each name of INTS, `wides` one (of four limbs) for each of WIDES."""

    ints: Ints
    wides: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def empty(cls) -> BucketColumns:
        return cls(np.zeros((4, 0), dtype=np.int64), np.zeros((6, 4, 0), dtype=np.uint64))

    @classmethod
    def of(cls, buckets: Sequence[Bucket]) -> BucketColumns:
        """Columns of buckets that are given in order."""
        if not buckets:
            return cls.empty()
        ints = [[getattr(each, name) for each in buckets] for name in INTS]
        wides = [uint256.from_ints([getattr(each, name) for each in buckets]) for name in WIDES]
        return cls(np.array(ints, dtype=np.int64), np.stack(wides))

    @classmethod
    def concat(cls, parts: Sequence[BucketColumns]) -> BucketColumns:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        return cls(
            np.concatenate([part.ints for part in parts], axis=1),
            np.concatenate([part.wides for part in parts], axis=2),
        )

    @property
    def ts(self) -> Ints:
        ts: Ints = self.ints[0]
        return ts

    def wide(self, name: str) -> Wide:
        column: Wide = self.wides[WIDES.index(name)]
        return column

    def take(self, rows: NDArray[Any] | slice) -> BucketColumns:
        return BucketColumns(self.ints[:, rows], self.wides[:, :, rows])

    def between(self, from_ms: int, to_ms: int) -> BucketColumns:
        """The buckets that begin in `[from_ms, to_ms)`."""
        first, end = np.searchsorted(self.ts, [from_ms, to_ms])
        return self if end - first == len(self) else self.take(slice(first, end))

    def without(self, ts: Ints) -> BucketColumns:
        """The buckets that begin at none of these moments."""
        gone = np.isin(self.ts, ts)
        return self.take(~gone) if gone.any() else self

    def find(self, ts: int) -> Bucket | None:
        at = int(np.searchsorted(self.ts, ts))
        if at == len(self) or self.ts[at] != ts:
            return None
        return next(iter(self.take(slice(at, at + 1))))

    def __iter__(self) -> Iterator[Bucket]:
        ints = self.ints.tolist()
        wides = [uint256.to_ints(each) for each in self.wides]
        for row in zip(*ints, *wides, strict=True):
            yield Bucket(*row)


def joined(older: BucketColumns, newer: BucketColumns) -> BucketColumns:
    """The buckets of both; those of the same moment become one.

    Trades of `newer` were added after all those of `older`. Raises SumOverflow.
    """
    if not len(older) or not len(newer):
        return newer if len(newer) else older
    if older.ts[-1] < newer.ts[0]:
        return BucketColumns.concat([older, newer])
    shared, in_older, in_newer = np.intersect1d(
        older.ts, newer.ts, assume_unique=True, return_indices=True
    )
    alone = np.ones(len(newer), dtype=bool)
    alone[in_newer] = False
    whole = BucketColumns(older.ints.copy(), older.wides.copy())
    if len(shared):
        both = _combined(older.take(in_older), newer.take(in_newer))
        whole.ints[:, in_older] = both.ints
        whole.wides[:, :, in_older] = both.wides
    return _sorted(BucketColumns.concat([whole, newer.take(alone)]))


def replaced(older: BucketColumns, newer: BucketColumns) -> BucketColumns:
    """The buckets of both; where both have one, that of `newer`."""
    return _sorted(BucketColumns.concat([older.without(newer.ts), newer]))


def _sorted(columns: BucketColumns) -> BucketColumns:
    if (np.diff(columns.ts) > 0).all():
        return columns
    return columns.take(np.argsort(columns.ts, kind="stable"))


def _combined(older: BucketColumns, newer: BucketColumns) -> BucketColumns:
    """Row by row, buckets of the same moments."""
    ts, first_ts, last_ts, trades = older.ints
    first, high, low, close, sum_base, sum_quote = older.wides
    is_first, is_last = newer.ints[1] < first_ts, newer.ints[2] >= last_ts
    ints = np.stack(
        [
            ts,
            np.where(is_first, newer.ints[1], first_ts),
            np.where(is_last, newer.ints[2], last_ts),
            trades + newer.ints[3],
        ]
    )
    sums = [uint256.add(sum_base, newer.wides[4]), uint256.add(sum_quote, newer.wides[5])]
    for _, over in sums:
        if over.any():
            raise SumOverflow(f"the bucket at {ts[over][0]}: a sum passes 2^256-1")
    wides = np.stack(
        [
            np.where(is_first, newer.wides[0], first),
            np.where(uint256.less(high, newer.wides[1]), newer.wides[1], high),
            np.where(uint256.less(newer.wides[2], low), newer.wides[2], low),
            np.where(is_last, newer.wides[3], close),
            *(total for total, _ in sums),
        ]
    )
    return BucketColumns(ints, wides)
