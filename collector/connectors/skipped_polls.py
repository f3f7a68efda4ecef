"""Requests of a connector with spacing that were refused: logged, and counted for every process.

A refused request is a poll that was left out. Its job tries again when the budget has room, so the
counts show how far the budget is from what was wanted, and for which series.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from collector.connectors.spaced_denial import MIN_INTERVAL, PRIORITY_RESERVE
from collector.errors import DatabaseUnavailable
from collector.exchanges.throttle_log import QUOTAS, ThrottleLog

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.connectors.registry import ConnectorRegistry
    from collector.errors import RateLimited

SKIP_REASONS = QUOTAS | {MIN_INTERVAL, PRIORITY_RESERVE, "window"}
"""A pause or a ban stops every request, not that of one series."""


class SkippedPolls:
    """Those of one exchange that this process meets."""

    def __init__(self, exchange_id: str, registry: ConnectorRegistry, clock: Clock) -> None:
        self._exchange_id = exchange_id
        self._registry = registry
        self._clock = clock
        self._log = ThrottleLog(exchange_id)

    def allowed(self, key: str) -> None:
        self._log.allowed(key)

    async def denied(self, key: str, denial: RateLimited) -> None:
        if denial.reason not in SKIP_REASONS:
            return
        wait_seconds = (denial.retry_after_ms or 0) / 1000
        now_ms = round(self._clock.monotonic() * 1000)
        self._log.denied(key, denial.reason, wait_seconds, now_ms)
        with suppress(DatabaseUnavailable):  # One count less; the denial is what matters.
            await self._registry.register_skip(self._exchange_id, key, denial.reason)
