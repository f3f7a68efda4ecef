"""The price of a market at any moment: the last trade of its own bars. The same on every run."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from collector.simulated import bars as row
from collector.simulated.bars import MINUTE
from collector.simulated.encode import decimal

if TYPE_CHECKING:
    from collector.simulated.series import SimulatedSeries
    from collector.simulated.view import ClientView

_LOOK_BACK_MINUTES = 60


class TickTape:
    """Looks up prices of one market, a minute of trades at a time."""

    def __init__(self, series: SimulatedSeries) -> None:
        self._series = series
        self._minute_ms = -1
        self._times: list[int] = []
        self._prices: list[int] = []

    @property
    def venue_id(self) -> str:
        return self._series.listing.id

    def price(self, view: ClientView, now_ms: int) -> int | None:
        """The last price in ticks; None when the market was not traded for an hour."""
        minute_ms = MINUTE.floor(now_ms)
        if minute_ms != self._minute_ms:
            self._read(view, minute_ms)
        at = bisect_right(self._times, now_ms)
        return self._prices[at - 1] if at else None

    def book(self, view: ClientView, now_ms: int) -> tuple[str, str] | None:
        """Best bid and ask, a tick to either side of the last price."""
        price = self.price(view, now_ms)
        if price is None:
            return None
        digits = self._series.listing.price_digits
        return decimal(max(price - 1, 1), digits), decimal(price + 1, digits)

    def _read(self, view: ClientView, minute_ms: int) -> None:
        self._minute_ms, self._times, self._prices = minute_ms, [], []
        before = view.minutes(
            self._series, minute_ms - _LOOK_BACK_MINUTES * MINUTE.ms, minute_ms, minute_ms
        )
        if len(before):
            self._times.append(minute_ms - 1)
            self._prices.append(int(before.table[row.CLOSE, -1]))
        if not self._series.listing.trading(minute_ms):
            return
        trades = view.trades(self._series, minute_ms, minute_ms + MINUTE.ms)
        self._times += trades.at_ms.tolist()
        self._prices += trades.prices.tolist()
