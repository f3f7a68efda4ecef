"""How often new bars are polled for, by the connectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseUnavailable, NotFound
from collector.jobs.schedule import Poll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.jobs.job import Job
    from collector.mongo.client import Database

FRESH_SECONDS = 1.0


class Cadences:
    """Reads a connector's cadence at most once a second, however many jobs end."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._registry = ConnectorRegistry(database)
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[str, Any] | None]] = {}

    async def applied(self, job: Job) -> Job:
        """The job; one that is polled, with the seconds that hold now."""
        if not isinstance(job.schedule, Poll):
            return job
        cadence = await self._of(job.exchange_id)
        return replace(job, schedule=job.schedule.at_cadence(cadence))

    async def _of(self, exchange_id: str) -> Mapping[str, Any] | None:
        now = self._clock.monotonic()
        read_at, cadence = self._known.get(exchange_id, (float("-inf"), None))
        if now - read_at < FRESH_SECONDS:
            return cadence
        try:
            found = await self._registry.get(exchange_id)
        except (DatabaseUnavailable, NotFound):
            return cadence
        cadence = found.document.get("cadence")
        self._known[exchange_id] = now, cadence
        return cadence
