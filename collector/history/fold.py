"""Trades into buckets, many at once: one pass over the columns, whatever the number of pairs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from collector.history import uint256
from collector.history.bucket_columns import BucketColumns
from collector.history.refusal import SumOverflow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.history.pair import Pair
    from collector.history.trade_columns import TradeColumns
    from collector.history.uint256 import Wide


def fold(trades: TradeColumns, bucket_ms: int) -> dict[Pair, BucketColumns]:
    """The buckets that these trades alone make, by pair. Raises SumOverflow."""
    if not len(trades):
        return {}
    order = _order(trades)
    if order is not None:
        trades = trades.take(order)
    begins = trades.ts // bucket_ms
    begins *= bucket_ms
    changes = begins[1:] != begins[:-1]
    if len(trades.pairs) > 1:
        changes |= trades.code[1:] != trades.code[:-1]
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    columns = _grouped(trades, begins, starts)
    codes = trades.code[starts]
    edges = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1], [True]]))
    return {
        trades.pairs[codes[first]]: columns.take(slice(first, end))
        for first, end in itertools.pairwise(edges)
    }


def _order(trades: TradeColumns) -> NDArray[np.intp] | None:
    """By pair, time and position; None when they are in that order already.

    Sorting is stable, so rows of one moment keep the order of their positions.
    """
    by_time = None
    if (trades.ts[1:] < trades.ts[:-1]).any():
        by_time = np.argsort(trades.ts, kind="stable")
    if len(trades.pairs) == 1:
        return by_time
    codes = trades.code if by_time is None else trades.code[by_time]
    by_pair = np.argsort(codes, kind="stable")
    return by_pair if by_time is None else by_time[by_pair]


def _grouped(
    trades: TradeColumns, begins: NDArray[np.int64], starts: NDArray[np.intp]
) -> BucketColumns:
    ends = np.append(starts[1:], len(trades)) - 1
    ints = np.stack([begins[starts], trades.ts[starts], trades.ts[ends], ends - starts + 1])
    wides = np.stack(
        [
            uint256.take(trades.price, starts),
            uint256.group_most(trades.price, starts),
            uint256.group_least(trades.price, starts),
            uint256.take(trades.price, ends),
            _sums(trades.base, starts, ints[0]),
            _sums(trades.quote, starts, ints[0]),
        ]
    )
    return BucketColumns(ints, wides)


def _sums(column: Wide, starts: NDArray[np.intp], ts: NDArray[np.int64]) -> Wide:
    sums, over = uint256.group_sums(column, starts)
    if over.any():
        raise SumOverflow(f"the bucket at {ts[over][0]}: a sum passes 2^256-1")
    return sums
