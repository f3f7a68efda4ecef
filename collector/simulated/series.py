"""Every minute of one market, past or to come, as a pure function of (seed, symbol, minute)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from collector.durations import MINUTE_MS
from collector.simulated import bars as row
from collector.simulated.bars import Bars, empty_table
from collector.simulated.noise import UNIT, key, levels, octave_keys, words

if TYPE_CHECKING:
    from collector.simulated.listing import SimulatedMarket
    from collector.simulated.noise import Ints, Words

_BLOCK = 32
_FEWEST_TRADES = 4  # Open, high, low and close are trades of their own.
_SQUARINGS = 10
_LOW_16 = np.uint64(0xFFFF)
_S16, _S32 = np.uint64(16), np.uint64(32)


class SimulatedSeries:
    """One market's minutes. The open of a minute is the close of the one before it."""

    def __init__(self, listing: SimulatedMarket, seed: int) -> None:
        self.listing = listing
        self._octaves = octave_keys(key(seed, listing.id, "price"))
        self._shape_stream = key(seed, listing.id, "shape")
        self._volume_stream = key(seed, listing.id, "volume")
        self.trade_stream = key(seed, listing.id, "trades")
        self._anchor = listing.price * 10**listing.price_digits
        self._stir = max(2, round(self._anchor * listing.swing))
        lots = listing.turnover / listing.price * 10**listing.volume_digits
        self._lots = max(2 * _FEWEST_TRADES, round(lots))

    def minutes(self, start_ms: int, end_ms: int) -> Bars:
        """The minute bars that open in [start_ms, end_ms) and exist."""
        first = max(start_ms, self.listing.listed_ms)
        last = end_ms if self.listing.delisted_ms is None else min(end_ms, self.listing.delisted_ms)
        begin, end = -(-first // MINUTE_MS), -(-last // MINUTE_MS)
        table = self._table(begin, end - begin) if begin < end else empty_table()
        bars = Bars(table, self.listing.price_digits, self.listing.volume_digits)
        for away_ms, back_ms in self.listing.away:
            if away_ms < last and first < back_ms:
                bars = bars.keep((bars.open_ms < away_ms) | (bars.open_ms >= back_ms))
        return bars

    def _table(self, first: int, count: int) -> Ints:
        """Short ranges come from cached blocks: collectors mostly request the newest two bars, and
        numpy's overhead would be most of that cost.
        """
        if count > _BLOCK:
            return self._compute(first, count)
        block, offset = divmod(first, _BLOCK)
        table = _block(self, block)
        if offset + count > _BLOCK:
            table = np.concatenate([table, _block(self, block + 1)], axis=1)
        return table[:, offset : offset + count]

    def compute_block(self, block: int) -> Ints:
        return self._compute(block * _BLOCK, _BLOCK)

    def _compute(self, first: int, count: int) -> Ints:
        borders = self._prices(first, count + 1)
        minutes = np.arange(first, first + count, dtype=np.int64)
        shape = words(minutes, self._shape_stream)
        table = np.empty((10, count), dtype=np.int64)
        table[row.OPEN_MS] = minutes * MINUTE_MS
        table[row.OPEN] = opens = borders[:-1]
        table[row.CLOSE] = closes = borders[1:]
        move = np.abs(closes - opens)
        reach = self._stir + (move >> 1)
        up = (_low_bits(shape) * reach) >> 16
        down = (_low_bits(shape >> _S16) * reach) >> 16
        table[row.HIGH] = np.maximum(opens, closes) + up
        table[row.LOW] = np.maximum(np.minimum(opens, closes) - down, 1)
        self._fill_volume(table, minutes, move, shape)
        return table

    def _fill_volume(self, table: Ints, minutes: Ints, move: Ints, shape: Words) -> None:
        """Volume is skewed and grows with the move; turnover is volume at a price inside the bar,
        and the takers' part lies between a quarter and three quarters."""
        dice = words(minutes, self._volume_stream)
        skewed = (_low_bits(dice) * _low_bits(dice >> _S16)) >> 14
        volume = (skewed * self._lots) >> 18
        volume += volume * np.minimum(move, 4 * self._stir) // self._stir
        volume += 2 * _FEWEST_TRADES
        trades = _FEWEST_TRADES + (_low_bits(dice >> _S32) % 60)
        taker = (volume * ((1 << 14) + (_low_bits(shape >> _S32) >> 1))) >> 16
        usual = table[row.OPEN : row.CLOSE + 1].sum(axis=0) >> 2
        table[row.VOLUME] = volume
        table[row.QUOTE] = volume * usual
        table[row.TRADES] = np.minimum(trades, volume)
        table[row.TAKER] = taker
        table[row.TAKER_QUOTE] = taker * usual

    def _prices(self, first: int, count: int) -> Ints:
        """Ticks at the start of each minute."""
        drift = levels(first, count, self._octaves) * (self.listing.swing / UNIT)
        # exp by squaring: only multiplications, which round alike on every machine and in arrays
        # of every length. numpy's exp does not promise that.
        growth = 1.0 + drift / (1 << _SQUARINGS)
        for _ in range(_SQUARINGS):
            growth *= growth
        ticks: Ints = np.maximum(np.rint(growth * self._anchor), 1).astype(np.int64)
        return ticks


@lru_cache(maxsize=24_000)
def _block(series: SimulatedSeries, block: int) -> Ints:
    table = series.compute_block(block)
    table.setflags(write=False)  # Shared by every answer that holds a part of it.
    return table


def _low_bits(dice: Words) -> Ints:
    """A number below 65,536 from each word."""
    return (dice & _LOW_16).astype(np.int64)
