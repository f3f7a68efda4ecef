"""`Bucket`: the trades of one pair in one stretch of time, exact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """What follows from its own trades, without its neighbours.

    The opening price is the close of the pair's bucket before, so it is worked out when a bucket is
    read; `first` is the price of the first trade here. Trades are ordered by time and then by
    position, which is the order in which they were added.
    """

    ts: int
    first_ts: int
    last_ts: int
    trades: int
    first: int
    high: int
    low: int
    close: int
    sum_base: int
    sum_quote: int
