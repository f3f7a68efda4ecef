"""What the exchange shows at one moment: the truth so far, the bar still running, its own flaws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.simulated.bars import MINUTE, Bars
from collector.simulated.trades import (
    NO_TRADES,
    Trades,
    running_bar,
    trades_of,
)

if TYPE_CHECKING:
    from collector.market.timeframe import Timeframe
    from collector.simulated.faults.history import Missing, Revision
    from collector.simulated.listing import SimulatedMarket
    from collector.simulated.series import SimulatedSeries
    from collector.simulated.truth import Truth


@dataclass(frozen=True, slots=True)
class ClientView:
    """The exchange's own history as a client sees it. `now_ms` is always an argument."""

    truth: Truth
    missing: tuple[Missing, ...] = ()
    revisions: tuple[Revision, ...] = ()

    def page(
        self,
        symbol: str,
        frame: Timeframe,
        start_ms: int | None,
        end_ms: int | None,
        limit: int,
        now_ms: int,
    ) -> Bars:
        """At most `limit` bars as Binance picks them: the first from `start_ms` on, or without one
        the last up to `end_ms`. The running bar comes last, with the values it has so far."""
        series = self.truth.series(symbol)
        first = frame.floor(series.listing.listed_ms)
        newest = min(now_ms, now_ms if end_ms is None else end_ms, _last_ms(series.listing, now_ms))
        end = frame.next_open(newest)
        if start_ms is None:
            return self._backward(series, frame, first, end, limit, now_ms)
        start = max(first, frame.ceil(start_ms))
        return self._forward(series, frame, start, end, limit, now_ms)

    def minutes(self, series: SimulatedSeries, start_ms: int, end_ms: int, now_ms: int) -> Bars:
        """The minutes in [start_ms, end_ms) as they look at `now_ms`."""
        running = MINUTE.floor(now_ms)
        final = self.truth.minutes(series, start_ms, min(end_ms, running + MINUTE.ms))
        minutes = final
        for fault in self.revisions:
            if fault.concerns(series.listing.id):
                minutes = fault.apply(minutes, series.listing.id, self.truth.seed, now_ms)
        if not len(final) or int(final.open_ms[-1]) != running:
            return minutes
        table = minutes.table.copy()
        last = final.table[:, -1]
        table[:, -1] = running_bar(last, trades_of(last, series.trade_stream), now_ms)
        return Bars(table, minutes.price_digits, minutes.volume_digits)

    def trades(self, series: SimulatedSeries, minute_ms: int, now_ms: int) -> Trades:
        """The trades of one minute that have happened by `now_ms`."""
        minute = self.truth.minutes(series, minute_ms, minute_ms + MINUTE.ms)
        if not len(minute):
            return NO_TRADES
        return trades_of(minute.table[:, 0], series.trade_stream).until(now_ms)

    def _bars(
        self, series: SimulatedSeries, frame: Timeframe, start_ms: int, end_ms: int, now_ms: int
    ) -> Bars:
        bars = self.minutes(series, start_ms, end_ms, now_ms).aggregate(frame)
        for fault in self.missing:
            if fault.concerns(series.listing.id):
                bars = fault.apply(bars, series.listing.id, self.truth.seed)
        return bars

    def _forward(
        self,
        series: SimulatedSeries,
        frame: Timeframe,
        start: int,
        end: int,
        limit: int,
        now_ms: int,
    ) -> Bars:
        """Bars may be absent, so a page reaches on, ever further, until it is full or the history
        ends."""
        page = series.minutes(0, 0)
        reach = limit
        while start < end and len(page) < limit:
            stop = min(end, frame.shift(start, _stretch(frame, reach)))
            bars = self._bars(series, frame, start, stop, now_ms)
            page = page.join(bars) if len(page) else bars
            start, reach = stop, reach * 2
        return page.keep(slice(0, limit)) if len(page) > limit else page

    def _backward(
        self,
        series: SimulatedSeries,
        frame: Timeframe,
        first: int,
        end: int,
        limit: int,
        now_ms: int,
    ) -> Bars:
        page = series.minutes(0, 0)
        reach = limit
        while first < end and len(page) < limit:
            start = max(first, frame.shift(end, -_stretch(frame, reach)))
            bars = self._bars(series, frame, start, end, now_ms)
            page = bars.join(page) if len(page) else bars
            end, reach = start, reach * 2
        return page.keep(slice(-limit, None)) if len(page) > limit else page


def _stretch(frame: Timeframe, count: int) -> int:
    """How many bars to reach at once: `count`, but never more minutes than memory likes."""
    return min(count, max(1, (1 << 16) * MINUTE.ms // frame.ms))


def _last_ms(listing: SimulatedMarket, now_ms: int) -> int:
    return now_ms if listing.delisted_ms is None else min(now_ms, listing.delisted_ms - 1)
