"""Bars as whole numbers: prices in ticks, volumes in lots, so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.simulated.noise import Flags, Ints

MINUTE = Timeframe.parse("1m")
_MINUTES = ("1m", "3m", "5m", "15m", "30m")
_HOURS = ("1h", "2h", "4h", "6h", "8h", "12h")
_DAYS = ("1d", "3d", "1w", "1M")
FRAMES = {name: Timeframe.parse(name) for name in (*_MINUTES, *_HOURS, *_DAYS)}
"""The intervals that are served. Binance's 1s is not."""

# The rows of a table, one column a bar.
OPEN_MS, OPEN, HIGH, LOW, CLOSE, VOLUME, QUOTE, TRADES, TAKER, TAKER_QUOTE = range(10)
_ROWS = 10
_EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """A stretch of bars of one market, oldest first: `table` holds one bar a column."""

    table: Ints
    price_digits: int
    volume_digits: int

    def __len__(self) -> int:
        return int(self.table.shape[1])

    @property
    def open_ms(self) -> Ints:
        line: Ints = self.table[OPEN_MS]
        return line

    @property
    def digits(self) -> tuple[int, ...]:
        """How many decimals each row of the table has."""
        price, volume = self.price_digits, self.volume_digits
        return (0, *[price] * 4, volume, price + volume, 0, volume, price + volume)

    def keep(self, chosen: Flags | slice) -> Bars:
        return replace(self, table=self.table[:, chosen])

    def join(self, *later: Bars) -> Bars:
        return replace(self, table=np.concatenate([self.table, *(bars.table for bars in later)], 1))

    def aggregate(self, frame: Timeframe) -> Bars:
        """The same trading in longer bars; a bar without a single minute does not exist."""
        if frame == MINUTE or not len(self):
            return self
        opens = frame.floors(self.open_ms)
        starts = np.flatnonzero(np.diff(opens, prepend=opens[0] - 1))
        ends = np.append(starts[1:], len(self)) - 1
        table = np.add.reduceat(self.table, starts, axis=1)
        table[OPEN_MS] = opens[starts]
        table[OPEN] = self.table[OPEN, starts]
        table[HIGH] = np.maximum.reduceat(self.table[HIGH], starts)
        table[LOW] = np.minimum.reduceat(self.table[LOW], starts)
        table[CLOSE] = self.table[CLOSE, ends]
        return replace(self, table=table)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """ts and trades as integers, everything else as the float its decimal text reads as."""
        named = ("open", "high", "low", "close", "volume", "turnover")
        floats = {
            name: _floats(self.table[row], self.digits[row])
            for row, name in enumerate(named, start=OPEN)
        }
        return {"ts": self.open_ms, **floats, "trades": self.table[TRADES]}

    def arrow(self) -> pa.Table:
        """The columns as an Arrow table."""
        import pyarrow as pa  # Imported late: a server that never needs it stays small.

        return pa.table(self.columns())


def empty_table() -> Ints:
    return np.empty((_ROWS, 0), dtype=np.int64)


def _floats(values: Ints, digits: int) -> npt.NDArray[np.float64]:
    scale: int = 10**digits
    floats = values / np.float64(scale)
    # Past 2**53 numpy rounds twice; Python divides long integers with one rounding.
    for index in np.flatnonzero(values >= _EXACT):
        floats[index] = int(values[index]) / scale
    return floats
