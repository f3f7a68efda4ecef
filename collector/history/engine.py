"""The buckets of a network in memory: `append_trade`, `for_each_range`, `rebuild_bucket`.

Months are immutable and loaded when they are needed. A change is prepared beside them and takes
their place in one step under the lock, so that no reader sees one bucket changed and its neighbour
not yet. A reader takes references under the lock and works on them without it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from collector.history.bucket_columns import BucketColumns
from collector.history.candle import candles
from collector.history.fold import fold
from collector.history.month import Month, by_month, month_of
from collector.history.pair_buckets import PairBuckets
from collector.history.trade_columns import TradeColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from collector.history.bucket import Bucket
    from collector.history.candle import Candle
    from collector.history.event import CanonicalTrade
    from collector.history.pair import Pair

_END = 1 << 62


class Stored(Protocol):
    """Buckets that were saved: what the engine starts from."""

    def last_prices(self) -> Mapping[Pair, int]:
        """Every pair that ever had a bucket, and its last known price."""

    def months(self, pair: Pair) -> Iterable[int]:
        """The months that have buckets of this pair."""

    def load(self, pair: Pair, month: int) -> tuple[BucketColumns, bool]:
        """The buckets of one month, and whether they are saved as they are."""


class RebuildSource(Protocol):
    """Where trades are kept, as far as a rebuild needs to know."""

    def trades(self, from_ms: int, to_ms: int) -> TradeColumns:
        """The trades of `[from_ms, to_ms)` that were added and not deleted, in order."""


@dataclass
class PendingChange:
    """Months as they will be. They are not visible before the commit.

    last_prices  what a pair's last price is if it ends up without buckets
    """

    months: dict[tuple[Pair, int], Month] = field(default_factory=dict)
    last_prices: dict[Pair, int] = field(default_factory=dict)


class History:
    """Every pair's buckets of one length. Any thread may read; one thread at a time writes."""

    def __init__(self, bucket_sec: int, stored: Stored | None = None) -> None:
        if not 1 <= bucket_sec < 1 << 32:
            raise ValueError(f"a bucket cannot last {bucket_sec} s")
        self.bucket_ms = bucket_sec * 1000
        self._lock = threading.Lock()
        self._pairs: dict[Pair, PairBuckets] = {}
        if stored is not None:
            for pair, last_price in stored.last_prices().items():
                load = partial(stored.load, pair)
                self._pairs[pair] = PairBuckets(load, stored.months(pair), last_price)

    def last_prices(self) -> dict[Pair, int]:
        """Of every pair that ever had a bucket."""
        with self._lock:
            held = self._pairs.items()
            return {pair: each.last_price for pair, each in held if each.last_price is not None}

    def last_price(self, pair: Pair) -> int | None:
        """The close of the newest bucket; of a pair that has none any more, what it was last."""
        held = self._pairs.get(pair)
        return held.last_price if held is not None else None

    def append_trade(self, trade: CanonicalTrade) -> None:
        """Adds one trade, at a cost that does not depend on how much history there is.

        Raises SumOverflow with nothing changed.
        """
        change = PendingChange()
        self.prepare(change, TradeColumns.of([trade]))
        self.commit(change)

    def rebuild_bucket(self, ledger: RebuildSource, pair: Pair, ts: int) -> None:
        """Makes one bucket again from the ledger's window; without trades it is gone."""
        change = PendingChange()
        self.prepare_rebuild(change, ledger, ts, {pair})
        self.commit(change)

    def prepare(self, change: PendingChange, trades: TradeColumns) -> None:
        """Puts trades that were added after all others into a change. Raises SumOverflow."""
        for pair, columns in fold(trades, self.bucket_ms).items():
            for month, part in by_month(columns):
                change.months[pair, month] = self._month(change, pair, month).joined(part)

    def prepare_rebuild(
        self, change: PendingChange, ledger: RebuildSource, ts: int, pairs: Iterable[Pair]
    ) -> None:
        """Puts the buckets of these pairs that begin at `ts` into a change, made again."""
        made = fold(ledger.trades(ts, ts + self.bucket_ms), self.bucket_ms)
        for pair in pairs:
            month = self._month(change, pair, month_of(ts))
            again = made.get(pair)
            change.months[pair, month_of(ts)] = (
                month.without(ts) if again is None else month.replaced(again)
            )

    def commit(self, change: PendingChange) -> None:
        """Makes a change visible, all of it at once."""
        with self._lock:
            touched = {pair: self._held(pair) for pair, _ in change.months}
            for (pair, month), made in change.months.items():
                touched[pair].install(month, made)
            for pair, held in touched.items():
                newest = held.last_before(_END)
                if newest is not None:
                    held.last_price = newest.close
                elif pair in change.last_prices:
                    held.last_price = change.last_prices[pair]

    def copy(self) -> History:
        """The same buckets, to be changed without changing these."""
        made = History(self.bucket_ms // 1000)
        with self._lock:
            made._pairs = {pair: held.copy() for pair, held in self._pairs.items()}
        return made

    def columns(self, pair: Pair, from_ms: int, to_ms: int) -> BucketColumns:
        """The buckets that begin in `[from_ms, to_ms)`, ascending."""
        with self._lock:
            held = self._pairs.get(pair)
            return BucketColumns.empty() if held is None else held.between(from_ms, to_ms)

    def months(self, pair: Pair) -> list[int]:
        """The months in which the pair has buckets, ascending."""
        with self._lock:
            held = self._pairs.get(pair)
            return [] if held is None else sorted(held.months)

    def before(self, pair: Pair, ts: int) -> Bucket | None:
        """The pair's newest bucket that begins before `ts`."""
        with self._lock:
            held = self._pairs.get(pair)
            return None if held is None else held.last_before(ts)

    def find(self, pair: Pair, ts: int) -> Bucket | None:
        """The bucket that begins at `ts`."""
        with self._lock:
            held = self._pairs.get(pair)
            return None if held is None else held.find(ts)

    def for_each_range(
        self, pair: Pair, from_ms: int, to_ms: int, visit: Callable[[Candle], object]
    ) -> int:
        """Calls `visit` for each bucket that begins in the range; returns how many there were."""
        with self._lock:
            held = self._pairs.get(pair)
            if held is None:
                return 0
            columns, before = held.between(from_ms, to_ms), held.last_before(from_ms)
        found = candles(columns, None if before is None else before.close)
        for candle in found:
            visit(candle)
        return len(found)

    def changed(self) -> dict[tuple[Pair, int], Month]:
        """Months that are not as they were saved."""
        with self._lock:
            return {
                (pair, month): held.month(month)
                for pair, held in self._pairs.items()
                for month in held.changed
            }

    def saved(self, stored: Stored) -> None:
        """Everything is saved, and `stored` has it: memory keeps each pair's newest month."""
        with self._lock:
            for pair, held in self._pairs.items():
                held.saved()
                held.load = partial(stored.load, pair)

    def _held(self, pair: Pair) -> PairBuckets:
        held = self._pairs.get(pair)
        if held is None:
            held = self._pairs[pair] = PairBuckets(_nothing)
        return held

    def _month(self, change: PendingChange, pair: Pair, month: int) -> Month:
        made = change.months.get((pair, month))
        if made is not None:
            return made
        with self._lock:
            held = self._pairs.get(pair)
            if held is None:
                return Month()
            return held.month(month)


def _nothing(month: int) -> tuple[BucketColumns, bool]:
    raise KeyError(month)
