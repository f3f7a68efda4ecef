"""What really happened: the clean and final bars that a collector should end up with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from collector.simulated.bars import FRAMES, MINUTE, Bars
from collector.simulated.listing import WELL_KNOWN, SimulatedMarket
from collector.simulated.request import VenueError
from collector.simulated.series import SimulatedSeries

if TYPE_CHECKING:
    from collector.market.timeframe import Timeframe
    from collector.simulated.faults.history import NoTrade

_CHUNK_MINUTES = 1 << 16


@dataclass(frozen=True)
class Truth:
    """Every market's final history under one seed, as a pure function.

    Bars are final values after all revisions; minutes without a trade are absent. It has no "now":
    bars of the future can be requested too.
    """

    seed: int = 7
    listings: tuple[SimulatedMarket, ...] = WELL_KNOWN
    no_trade: tuple[NoTrade, ...] = field(default=())

    def bars(self, symbol: str, interval: str, start_ms: int, end_ms: int) -> Bars:
        """The bars of BTC/USDT (or BTCUSDT) that open in [start_ms, end_ms).

        Raises VenueError for a symbol or an interval that does not exist.
        """
        frame = frame_of(interval)
        series = self.series(symbol)
        at = frame.ceil(max(start_ms, frame.floor(series.listing.listed_ms)))
        last = frame.next_open(end_ms - 1)
        parts: list[Bars] = []
        while at < last:
            end = min(last, frame.shift(at, max(_CHUNK_MINUTES * MINUTE.ms // frame.ms, 1)))
            parts.append(self.minutes(series, at, end).aggregate(frame))
            at = end
        first, *rest = parts or [series.minutes(0, 0)]
        return first.join(*rest) if rest else first

    def minutes(self, series: SimulatedSeries, start_ms: int, end_ms: int) -> Bars:
        """The minutes of one series that open in [start_ms, end_ms) and were traded in."""
        minutes = series.minutes(start_ms, end_ms)
        for fault in self.no_trade:
            if fault.concerns(series.listing.id):
                minutes = fault.apply(minutes, series.listing.id, self.seed)
        return minutes

    def series(self, symbol: str) -> SimulatedSeries:
        """Raises VenueError when the exchange does not list it."""
        venue_id = symbol.replace("/", "")
        known = self._series.get(venue_id)
        if known is None:
            listing = self._by_id.get(venue_id)
            if listing is None:
                raise VenueError(-1121, "Invalid symbol.")
            known = self._series[venue_id] = SimulatedSeries(listing, self.seed)
        return known

    @cached_property
    def _by_id(self) -> dict[str, SimulatedMarket]:
        return {listing.id: listing for listing in self.listings}

    @cached_property
    def _series(self) -> dict[str, SimulatedSeries]:
        return {}


def frame_of(interval: str) -> Timeframe:
    """Raises VenueError for an interval that is not served."""
    frame = FRAMES.get(interval)
    if frame is None:
        raise VenueError(-1120, "Invalid interval.")
    return frame
