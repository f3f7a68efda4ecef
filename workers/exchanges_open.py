"""Which exchanges may run: not paused, not blocked, budget left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.clock import Clock
    from collector.connectors.connector import Connector
    from collector.connectors.limiter import Limiter
    from collector.mongo.client import Database

REFRESH_SECONDS = 2.0


class OpenExchanges:
    """A picture of the connectors, at most seconds old. The limiter has the last word."""

    def __init__(
        self,
        database: Database,
        limiter: Limiter,
        clock: Clock,
        *,
        only: Sequence[str] = (),
        early_seconds: float = 0.0,
    ) -> None:
        self._registry = ConnectorRegistry(database)
        self._server_clock = database.server_clock
        self._limiter = limiter
        self._clock = clock
        self._only = frozenset(only)
        self._early_seconds = early_seconds
        self._connectors: list[Connector] = []
        self._read_at = float("-inf")
        self._turn = 0

    async def refresh(self, *, now: bool = False) -> None:
        """Reads the connectors again, when the picture is old or somebody says it changed."""
        moment = self._clock.monotonic()
        if not now and moment - self._read_at < REFRESH_SECONDS:
            return
        self._connectors = [
            connector
            for connector in await self._registry.all()
            if not self._only or connector.exchange_id in self._only
        ]
        self._read_at = moment

    @property
    def exchange_ids(self) -> list[str]:
        """All of them, open or not."""
        return [connector.exchange_id for connector in self._connectors]

    def in_turn(self) -> tuple[list[Connector], float | None]:
        """Those that may run, each call beginning with another one; and when the next opens.

        The second value is in seconds, None when no closed exchange will open by itself. Both
        come from one look at the clock: an exchange that opens between two looks would be in
        neither answer, and the worker would sleep through it.
        """
        self._turn += 1
        now_ms, moment = self._server_clock.now_ms(), self._clock.monotonic()
        running, waits = [], []
        for connector in self._connectors:
            stopped = connector.stopped(now_ms)
            exhausted_until = self._limiter.exhausted_until(connector.exchange_id)
            exhausted = exhausted_until - self._early_seconds - moment
            if stopped is not None:
                waits.append((stopped.retry_at_ms - now_ms) / 1000)
            elif exhausted > 0:
                waits.append(exhausted)
            else:
                running.append(connector)
        first = self._turn % len(running) if running else 0
        return running[first:] + running[:first], min(waits, default=None)
