"""Writes the drift of exchanges' clocks into their connectors, for every process to see."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from collector.connectors.noted_drift import note_drift
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from workers.exchange_clock import ExchangeClock

EVERY_SECONDS = 60.0


class DriftReports:
    """At once when a drift begins or ends, and otherwise once a minute for each exchange."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: dict[str, tuple[bool, float]] = {}

    async def report(self, exchange_id: str, clock: ExchangeClock) -> None:
        """Never fails: a later answer reports again."""
        drift, is_off, now = clock.drift, clock.is_off, clock.monotonic()
        was_off, at = self._last.get(exchange_id, (False, float("-inf")))
        if drift is None or (is_off == was_off and now - at < EVERY_SECONDS):
            return
        self._last[exchange_id] = (is_off, now)
        with suppress(DatabaseUnavailable):
            await note_drift(
                self._database, exchange_id, drift.drift_ms, drift.doubt_ms, is_off=is_off
            )
