"""The last price of each symbol, and what of it is new. Pure: the moment is an argument.

However many ticks arrive, one price a symbol is kept, so memory grows with the symbols alone. What
a later tick replaced before a snapshot was made is counted, like everything else that is not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.streams.publisher import SnapPrice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.exchanges.ticks import PriceTick

AHEAD_SECONDS = 10.0
"""A venue's time may lie so far ahead of the clock here; what lies further ahead is an error."""


@dataclass(frozen=True, slots=True)
class TickTotals:
    """Since the stream began. `received` = `snapped` + `superseded` + `errors` + those waiting."""

    received: int = 0
    snapped: int = 0
    superseded: int = 0
    """Replaced by a newer tick of the same symbol before a snapshot was made, or followed no
    longer by then."""
    errors: int = 0
    """Without a usable price, or older than the one that is known."""


class LastPrices:
    """Takes ticks; gives a snapshot of the symbols that had one since the last snapshot."""

    def __init__(self) -> None:
        self._last: dict[str, PriceTick] = {}
        self._heard: dict[str, float] = {}
        self._new: set[str] = set()
        self._received = self._snapped = self._superseded = self._errors = 0
        self._last_at: float | None = None
        self.snap_ts: float | None = None

    @property
    def totals(self) -> TickTotals:
        return TickTotals(self._received, self._snapped, self._superseded, self._errors)

    @property
    def waiting(self) -> int:
        """How many symbols the next snapshot will hold."""
        return len(self._new)

    @property
    def symbols(self) -> int:
        """How many have had a price."""
        return len(self._last)

    @property
    def tick_ts(self) -> float | None:
        """The venue's time of the newest tick."""
        return max((tick.at for tick in self._last.values()), default=None)

    def take(self, tick: PriceTick, monotonic: float) -> None:
        self._received += 1
        known = self._last.get(tick.symbol)
        if not _is_price(tick) or (known is not None and _is_older(tick, known)):
            self._errors += 1
            return
        if tick.symbol in self._new:
            self._superseded += 1
        self._last[tick.symbol] = tick
        self._new.add(tick.symbol)
        self._last_at = monotonic
        if tick.symbol in self._heard:
            self._heard[tick.symbol] = monotonic

    def snapshot(self, now: float) -> tuple[SnapPrice, ...]:
        """One record for each symbol that had a tick since the last snapshot; often none."""
        new, self._new = sorted(self._new), set()
        if not new:
            return ()
        self._snapped += len(new)
        self.snap_ts = now
        return tuple(
            SnapPrice(symbol, tick.bid, tick.ask, mid(tick), tick.at, now)
            for symbol, tick in ((symbol, self._last[symbol]) for symbol in new)
        )

    def silence(self, monotonic: float) -> float | None:
        """Seconds since the last tick of any symbol; None before the first."""
        return None if self._last_at is None else max(0.0, monotonic - self._last_at)

    def follow(self, symbols: Iterable[str], monotonic: float) -> None:
        """Expects ticks of these symbols and forgets all others. The silence of a new one begins
        now.
        """
        self._heard = {symbol: self._heard.get(symbol, monotonic) for symbol in symbols}
        gone = self._last.keys() - self._heard.keys()
        self._superseded += len(self._new & gone)
        self._new -= gone
        for symbol in gone:
            del self._last[symbol]

    def longest_silence(self, monotonic: float) -> float | None:
        """Seconds since the last tick of the followed symbol that is silent longest."""
        return None if not self._heard else max(0.0, monotonic - min(self._heard.values()))

    def symbols_state(self, now: float, most: int) -> dict[str, dict[str, Any]]:
        """bid, ask, mid and age of each symbol; with more than `most`, of the oldest ticks."""
        oldest = sorted(self._last.values(), key=lambda tick: tick.at)[:most]
        return {
            tick.symbol: {
                "bid": tick.bid,
                "ask": tick.ask,
                "mid": mid(tick),
                "tick_age": round(max(0.0, now - tick.received), 3),
            }
            for tick in sorted(oldest, key=lambda tick: tick.symbol)
        }


def mid(tick: PriceTick) -> float:
    """Between bid and ask, without the noise of binary fractions."""
    return round((tick.bid + tick.ask) / 2, 10)


def _is_older(tick: PriceTick, known: PriceTick) -> bool:
    """By the venue's own times; without them the order of arrival counts.

    A time in the future does not count either, or one wrong date would stop a price for good.
    """
    are_timed = tick.at != tick.received and known.at != known.received
    return are_timed and tick.at < known.at <= known.received + AHEAD_SECONDS


def _is_price(tick: PriceTick) -> bool:
    return 0 < tick.bid < math.inf and 0 < tick.ask < math.inf and bool(tick.symbol) and tick.at > 0
