"""The buckets of one pair and month, and which month a moment belongs to.

A month is kept as short pieces, ascending: a batch replaces the pieces it touches, so its cost is
that of its own buckets and not of the month's.
"""

from __future__ import annotations

import functools
import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.durations import DAY_MS
from collector.history.bucket_columns import BucketColumns, joined, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.history.bucket import Bucket

PIECE = 1_024
"""Buckets of a piece."""
_NAME = re.compile(r"([0-9]{4})-([0-9]{2})")


@dataclass(frozen=True, slots=True, eq=False)
class Month:
    """Never changed: every step gives another one."""

    pieces: tuple[BucketColumns, ...] = ()

    @classmethod
    def of(cls, columns: BucketColumns) -> Month:
        return cls(tuple(_cut(columns)))

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def find(self, ts: int) -> Bucket | None:
        at = bisect_right(self.pieces, ts, key=_begin) - 1
        return self.pieces[at].find(ts) if at >= 0 else None

    def last_before(self, ts: int) -> Bucket | None:
        """The newest bucket that begins before `ts`."""
        at = bisect_right(self.pieces, ts - 1, key=_begin) - 1
        if at < 0:
            return None
        piece = self.pieces[at]
        row = int(np.searchsorted(piece.ts, ts)) - 1
        return next(iter(piece.take(slice(row, row + 1))))

    def between(self, from_ms: int, to_ms: int) -> BucketColumns:
        first = max(0, bisect_right(self.pieces, from_ms, key=_begin) - 1)
        found = []
        for piece in self.pieces[first:]:
            if piece.ts[0] >= to_ms:
                break
            found.append(piece.between(from_ms, to_ms))
        return BucketColumns.concat(found)

    def whole(self) -> BucketColumns:
        return BucketColumns.concat(self.pieces)

    def joined(self, newer: BucketColumns) -> Month:
        """With the trades of `newer` as well, which were added later. Raises SumOverflow."""
        return self._spliced(newer, joined)

    def replaced(self, newer: BucketColumns) -> Month:
        """With the buckets of `newer` instead of those of the same moments."""
        return self._spliced(newer, replaced)

    def without(self, ts: int) -> Month:
        at = bisect_right(self.pieces, ts, key=_begin) - 1
        if at < 0:
            return self
        left = self.pieces[at].without(np.array([ts]))
        return Month((*self.pieces[:at], *([left] if len(left) else []), *self.pieces[at + 1 :]))

    def _spliced(
        self, newer: BucketColumns, how: Callable[[BucketColumns, BucketColumns], BucketColumns]
    ) -> Month:
        if not len(newer):
            return self
        first = max(0, bisect_right(self.pieces, int(newer.ts[0]), key=_begin) - 1)
        end = bisect_right(self.pieces, int(newer.ts[-1]), key=_begin)
        touched = BucketColumns.concat(self.pieces[first:end])
        return Month((*self.pieces[:first], *_cut(how(touched, newer)), *self.pieces[end:]))


def month_of(ts: int) -> int:
    """Months since 1970, in UTC."""
    return _month_of_day(ts // DAY_MS)


@functools.lru_cache(maxsize=1_024)
def _month_of_day(day: int) -> int:
    return int(np.datetime64(day, "D").astype("datetime64[M]").astype(np.int64))


def month_start(month: int) -> int:
    return int(np.datetime64(month, "M").astype("datetime64[ms]").astype(np.int64))


def month_name(month: int) -> str:
    return f"{1970 + month // 12:04}-{month % 12 + 1:02}"


def parse_month(name: str) -> int:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no month")
    return (int(match[1]) - 1970) * 12 + int(match[2]) - 1


def by_month(columns: BucketColumns) -> Iterator[tuple[int, BucketColumns]]:
    """The buckets of each month, ascending."""
    months = columns.ts.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    edges = np.flatnonzero(np.concatenate([[True], months[1:] != months[:-1], [True]]))
    for first, end in itertools.pairwise(edges):
        if end > first:
            yield int(months[first]), columns.take(slice(first, end))


def _begin(piece: BucketColumns) -> int:
    return int(piece.ts[0])


def _cut(columns: BucketColumns) -> Iterator[BucketColumns]:
    """Pieces that are at most twice as long as they should be."""
    if len(columns) <= 2 * PIECE:
        if len(columns):
            yield columns
        return
    for first in range(0, len(columns), PIECE):
        yield columns.take(slice(first, min(first + PIECE, len(columns))))
