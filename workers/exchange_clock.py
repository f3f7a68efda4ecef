"""The exchange's date, and how far its clock is from MongoDB's.

The exchange's clock decides whether a bar has ended. Most answers contain its time, to the second;
from other exchanges it is requested now and then. Between answers our own elapsed time carries it
on, so that a wrong clock of MongoDB's makes no bar late.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from collector import logs
from collector.clock import FarClock
from collector.errors import CollectorError, TimeDrift
from collector.metrics import EXCHANGE_CLOCK_DRIFT
from collector.reports.clock_drift import MAX_DRIFT_MS, Drift, clock_drift
from collector.reports.drift_bounds import DriftBounds

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.exchanges.port import Exchange
    from collector.mongo.server_clock import ServerClock

FRESH_SECONDS = 600.0
RETRY_SECONDS = 60.0
ROUNDED_MS = 999
"""A date in a header is rounded down to the second."""

_log = logs.get("workers")


class ExchangeClock:
    """The exchange's clock as its answers report it."""

    def __init__(self, server_clock: ServerClock, clock: Clock, exchange_id: str = "") -> None:
        self._exchange_id = exchange_id
        self._bounds = DriftBounds()
        self._is_off = False
        self._server_clock = server_clock
        self._clock = clock
        self._far = FarClock(clock)
        self._drift: Drift | None = None
        self._due_at = clock.monotonic()
        self._measuring = asyncio.Lock()

    @property
    def drift(self) -> Drift | None:
        """As it was last measured; None before that."""
        return self._drift

    def now_ms(self) -> int:
        """The exchange's date; MongoDB's as long as the exchange has reported none."""
        return round(self._far.now_ms()) if self._far.is_known else self._server_clock.now_ms()

    def observe(self, reported_ms: int | None, sent: float) -> None:
        """Takes the date, to the second, of an answer to what was sent at monotonic `sent`.

        So a drift is noticed with the answers of everyday work.
        """
        if reported_ms is None:
            return
        self._far.observe(reported_ms, sent, rounded_ms=ROUNDED_MS)
        now = self.monotonic()
        least_ms = reported_ms - self._server_clock.now_ms()
        most_ms = least_ms + ROUNDED_MS + (now - sent) * 1000
        self._note(self._bounds.narrow(least_ms, most_ms, now))

    def on_servers_clock(self, reported_ms: int | None) -> int | None:
        """A date that the exchange reported, on MongoDB's clock."""
        if reported_ms is None:
            return None
        return reported_ms - (self.now_ms() - self._server_clock.now_ms())

    def wall_ms(self) -> int:
        """The date to measure against. Our own machine's is never consulted."""
        return self._server_clock.now_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last measuring, or the last try, is long ago."""
        return self.monotonic() >= self._due_at

    async def keep_fresh(self, exchange: Exchange) -> None:
        """Measures when it is due. An exchange that reports no time is left alone for a while."""
        async with self._measuring:
            if not self.is_due:
                return
            self._due_at = self.monotonic() + RETRY_SECONDS
            # The current page is worth more than a better clock.
            with suppress(CollectorError):
                await self.measure(exchange)

    async def measure(self, exchange: Exchange) -> Drift:
        """Requests the exchange's time. Logs once when its clock and ours drift apart."""
        measured = await clock_drift(exchange.server_ms, self)
        now = self.monotonic()
        theirs = self._server_clock.now_ms() + measured.drift_ms
        self._far.observe(theirs - measured.doubt_ms, now, rounded_ms=2 * measured.doubt_ms)
        self._due_at = self.monotonic() + FRESH_SECONDS
        drift_ms, doubt_ms = measured.drift_ms, measured.doubt_ms
        self._bounds.narrow(drift_ms - doubt_ms, drift_ms + doubt_ms, now)
        self._exchange_id = exchange.id
        self._note(measured)
        return measured

    @property
    def is_off(self) -> bool:
        """Whether the exchange's clock and MongoDB's are too far apart."""
        return self._is_off

    def _note(self, drift: Drift) -> None:
        """Records a drift; logs once when it begins and once when it is over."""
        was_off, self._is_off = self._is_off, drift.is_off(was_off=self._is_off)
        self._drift = drift
        # One answer leaves more doubt than there is drift: that is no measurement yet.
        if self._is_off or drift.doubt_ms < MAX_DRIFT_MS / 2:
            EXCHANGE_CLOCK_DRIFT.labels(self._exchange_id).set(drift.drift_ms / 1000)
        if self._is_off != was_off:
            _log_drift(self._exchange_id, drift, is_off=self._is_off)


def _log_drift(exchange_id: str, measured: Drift, *, is_off: bool) -> None:
    if not is_off:
        _log.info("clock_drift_over", exchange=exchange_id, drift_ms=round(measured.drift_ms))
        return
    _log.warning(
        "clock_drift",
        code=TimeDrift.exit_name,
        exchange=exchange_id,
        drift_ms=round(measured.drift_ms),
        doubt_ms=round(measured.doubt_ms),
    )
