"""How far an exchange's clock is from MongoDB's, and what the exchange's date is by it.

Whether a bar has ended is for the exchange's clock to say. Most answers carry it; for those that do
not, the exchange is asked for its time now and then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from collector import logs
from collector.errors import CollectorError, TimeDrift
from collector.metrics import EXCHANGE_CLOCK_DRIFT
from collector.reports.clock_drift import Drift, clock_drift

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.exchanges.port import Exchange
    from collector.mongo.server_clock import ServerClock

FRESH_SECONDS = 600.0
RETRY_SECONDS = 60.0

_log = logs.get("workers")


class ExchangeClock:
    """MongoDB's clock, put right by what the exchange said last."""

    def __init__(self, server_clock: ServerClock, clock: Clock) -> None:
        self._server_clock = server_clock
        self._clock = clock
        self._drift: Drift | None = None
        self._due_at = clock.monotonic()
        self._measuring = asyncio.Lock()

    @property
    def drift(self) -> Drift | None:
        """As it was last measured; None before that."""
        return self._drift

    def now_ms(self) -> int:
        """The exchange's date, MongoDB's as long as nothing was measured."""
        offset = 0 if self._drift is None else round(self._drift.drift_ms)
        return self._server_clock.now_ms() + offset

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
        """Measures when it is due. An exchange that does not tell is left alone for a while."""
        async with self._measuring:
            if not self.is_due:
                return
            self._due_at = self.monotonic() + RETRY_SECONDS
            # The page in hand is worth more than a better clock.
            with suppress(CollectorError):
                await self.measure(exchange)

    async def measure(self, exchange: Exchange) -> Drift:
        """Asks the exchange for its time. Says so once when its clock and ours drift apart."""
        measured = await clock_drift(exchange.server_ms, self)
        self._due_at = self.monotonic() + FRESH_SECONDS
        was_ok = self._drift is None or self._drift.ok
        self._drift = measured
        EXCHANGE_CLOCK_DRIFT.labels(exchange.id).set(measured.drift_ms / 1000)
        if measured.ok != was_ok:
            _say(exchange.id, measured)
        return measured


def _say(exchange_id: str, measured: Drift) -> None:
    if measured.ok:
        _log.info("clock_drift_over", exchange=exchange_id, drift_ms=round(measured.drift_ms))
        return
    _log.warning(
        "clock_drift",
        code=TimeDrift.exit_name,
        exchange=exchange_id,
        drift_ms=round(measured.drift_ms),
        doubt_ms=round(measured.doubt_ms),
    )
