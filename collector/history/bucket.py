"""`Bucket`: the trades of one pair in one stretch of time, exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.history.refusal import SumOverflow
from collector.history.uint256 import LIMIT

if TYPE_CHECKING:
    from collector.history.event import CanonicalTrade


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

    @classmethod
    def of(cls, ts: int, trade: CanonicalTrade) -> Bucket:
        price = trade.price
        return cls(ts, trade.ts, trade.ts, 1, price, price, price, price, trade.base, trade.quote)

    def with_trade(self, trade: CanonicalTrade) -> Bucket:
        """The bucket with one more trade, which was added after all others."""
        price, sum_base, sum_quote = (
            trade.price,
            self.sum_base + trade.base,
            self.sum_quote + trade.quote,
        )
        if sum_base >= LIMIT or sum_quote >= LIMIT:
            raise SumOverflow(f"{trade.pair} at {self.ts}: a sum passes 2^256-1")
        is_first, is_last = trade.ts < self.first_ts, trade.ts >= self.last_ts
        return Bucket(
            self.ts,
            trade.ts if is_first else self.first_ts,
            trade.ts if is_last else self.last_ts,
            self.trades + 1,
            price if is_first else self.first,
            max(price, self.high),
            min(price, self.low),
            price if is_last else self.close,
            sum_base,
            sum_quote,
        )
