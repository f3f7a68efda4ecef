"""The trades inside a minute: together they are its bar."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import compress
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from collector.durations import MINUTE_MS
from collector.simulated import bars as row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.simulated.noise import Flags, Ints

IDS_A_MINUTE = 1_000
"""Trade ids grow by this much a minute, so that an id can be found without counting from the
first trade. They are unique and ascending, with holes."""

_PLACES = np.arange(IDS_A_MINUTE, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Trades:
    """Trades in order, one a column: id, time, price in ticks, size in lots, and 1 where the buyer
    was the maker."""

    table: Ints

    def __len__(self) -> int:
        return int(self.table.shape[1])

    @property
    def ids(self) -> Ints:
        return self._line(0)

    @property
    def at_ms(self) -> Ints:
        return self._line(1)

    @property
    def prices(self) -> Ints:
        return self._line(2)

    @property
    def sizes(self) -> Ints:
        return self._line(3)

    @property
    def maker_bought(self) -> Ints:
        return self._line(4)

    def _line(self, number: int) -> Ints:
        line: Ints = self.table[number]
        return line

    def keep(self, chosen: Flags | slice) -> Trades:
        return Trades(self.table[:, chosen])

    def until(self, now_ms: int) -> Trades:
        """Those that have happened by `now_ms`."""
        return self.keep(slice(0, int(np.searchsorted(self.at_ms, now_ms, side="right"))))


NO_TRADES = Trades(np.empty((5, 0), dtype=np.int64))


def joined(parts: Iterable[Trades]) -> Trades:
    return Trades(np.concatenate([NO_TRADES.table, *(part.table for part in parts)], axis=1))


def trades_of(bar: Ints, stream: int) -> Trades:
    """The trades of one minute bar (a column of a table).

    The first is at the open, the last at the close, high and low are reached, and the sizes sum to
    the volume. The first trade is at the very start of the minute.
    """
    open_ms, opened, high, low, closed, volume, _, count, _, _ = bar.tolist()
    minute = open_ms // MINUTE_MS
    # One hash for the whole minute: three dice of sixteen bits a trade.
    thrown = hashlib.shake_128(b"%d %d" % (stream, minute)).digest(6 * count)
    dice = np.frombuffer(thrown, dtype="<u2").astype(np.int64).reshape(3, count)
    table = np.empty((5, count), dtype=np.int64)
    ids, at_ms, prices, sizes, makers = table
    np.add(_PLACES[:count], minute * IDS_A_MINUTE, out=ids)
    np.add(dice[0] * (high - low + 1) >> 16, low, out=prices)
    prices[1:3] = (high, low) if thrown[0] & 1 else (low, high)
    prices[0], prices[-1] = opened, closed
    dice[1] += 1  # No share is nothing, so their sum is not either.
    np.floor_divide(dice[1] * (volume - count), int(dice[1].sum()), out=sizes)
    sizes += 1
    sizes[-1] += volume - int(sizes.sum())
    step = MINUTE_MS // count
    np.add(_PLACES[:count] * step + (dice[2] * step >> 16), open_ms, out=at_ms)
    at_ms[0] = open_ms
    np.bitwise_and(dice[2], 1, out=makers)
    return Trades(table)


def running_bar(bar: Ints, trades: Trades, now_ms: int) -> Ints:
    """What the bar looks like before its minute is over: the trades so far."""
    done = trades.until(now_ms)
    # Plain lists: a few dozen trades are summed faster without numpy.
    _, _, prices, sizes, makers = done.table.tolist()
    costs = list(map(mul, prices, sizes))
    takers = [not maker for maker in makers]
    so_far = bar.copy()
    so_far[row.HIGH :] = (
        max(prices),
        min(prices),
        prices[-1],
        sum(sizes),
        sum(costs),
        len(prices),
        sum(compress(sizes, takers)),
        sum(compress(costs, takers)),
    )
    return so_far
