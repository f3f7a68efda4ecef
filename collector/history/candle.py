"""`Candle`: a bucket as it is read, with the opening price that its neighbour gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.history import uint256
from collector.history.bucket_columns import WIDES

if TYPE_CHECKING:
    from collector.history.bucket_columns import BucketColumns


@dataclass(frozen=True, slots=True)
class Candle:
    """`open` is the close of the bucket before, else the first trade's price.

    High and low include it. A filled candle stands where nothing was traded: all its prices are
    the last close, and `first_ts` and `last_ts` are its own beginning.
    """

    ts: int
    open: int
    high: int
    low: int
    close: int
    sum_base: int
    sum_quote: int
    first_ts: int
    last_ts: int
    trades: int
    filled: bool = False

    @classmethod
    def filler(cls, ts: int, price: int) -> Candle:
        return cls(ts, price, price, price, price, 0, 0, ts, ts, 0, filled=True)


def candles(
    columns: BucketColumns, opened: int | None, candle_ms: int | None = None
) -> list[Candle]:
    """Candles of ascending buckets; `opened` is the close of the pair's bucket before the first.

    `candle_ms` is a multiple of the buckets' length: several of them become one candle. Sums of
    that many may pass 2^256-1, so they are added as Python ints.
    """
    if not len(columns):
        return []
    begins = columns.ts if candle_ms is None else columns.ts // candle_ms * candle_ms
    starts = np.flatnonzero(np.concatenate([[True], begins[1:] != begins[:-1]]))
    ends = np.append(starts[1:], len(columns)) - 1
    _, high, low, _, _, _ = map(uint256.trimmed, columns.wides)
    first, close = columns.wide("first")[:, starts], columns.wide("close")[:, ends]
    base, quote = (
        np.add.reduceat(np.array(uint256.to_ints(columns.wide(name)), dtype=object), starts)
        for name in WIDES[4:]
    )
    closes = uint256.to_ints(close)
    opens = [uint256.to_ints(first[:, :1])[0] if opened is None else opened, *closes[:-1]]
    rows = zip(
        begins[starts].tolist(),
        opens,
        uint256.to_ints(uint256.group_most(high, starts)),
        uint256.to_ints(uint256.group_least(low, starts)),
        closes,
        base.tolist(),
        quote.tolist(),
        columns.ints[1][starts].tolist(),
        columns.ints[2][ends].tolist(),
        np.add.reduceat(columns.ints[3], starts).tolist(),
        strict=True,
    )
    return [
        Candle(ts, price, max(most, price), min(least, price), *rest)
        for ts, price, most, least, *rest in rows
    ]
