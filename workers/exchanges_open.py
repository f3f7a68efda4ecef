"""Which exchanges may run: not paused, not blocked, budget left. Networks always may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.jobs.network import MOST_JOBS, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.clock import Clock
    from collector.connectors.connector import Connector
    from collector.connectors.limiter import Limiter
    from collector.mongo.client import Database

REFRESH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where jobs may run now, an exchange or a network, and how many at a time in all workers."""

    exchange_id: str
    most_jobs: int | None
    connector: Connector | None = None
    """The exchange's; None for a network."""
    is_spent: bool = False
    """Whether there are no tokens now: only jobs that need none may run."""


@dataclass(frozen=True, slots=True)
class OpenRound:
    """One look at the exchanges."""

    running: Sequence[JobPlace]
    opens_in: float | None
    """Seconds until a closed one opens or has tokens again; None when none will by itself."""


class OpenExchanges:
    """A picture of the connectors, at most seconds old. The limiter has the last word."""

    def __init__(
        self,
        database: Database,
        limiter: Limiter,
        clock: Clock,
        *,
        only: Sequence[str] = (),
        networks: Sequence[str] = (),
        early_seconds: float = 0.0,
    ) -> None:
        self._registry = ConnectorRegistry(database)
        self._server_clock = database.server_clock
        self._limiter = limiter
        self._clock = clock
        self._only = frozenset(only)
        places = [place_of(network) for network in networks]
        self._networks = [JobPlace(each, MOST_JOBS) for each in places if not only or each in only]
        self._early_seconds = early_seconds
        self._connectors: list[Connector] = []
        self._read_at = float("-inf")
        self._turn = 0

    async def refresh(self, *, now: bool = False) -> None:
        """Reads the connectors again, when the copy is old or a change was reported."""
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
        connectors = [connector.exchange_id for connector in self._connectors]
        return [*connectors, *(each.exchange_id for each in self._networks)]

    def is_wanted(self, exchange_id: str) -> bool:
        """Whether it has a connector that is not paused."""
        now_ms = self._server_clock.now_ms()
        for connector in self._connectors:
            if connector.exchange_id == exchange_id:
                stopped = connector.stopped(now_ms)
                return stopped is None or stopped.reason not in ("paused", "deleted")
        return False

    def in_turn(self) -> OpenRound:
        """Those that may run, each call beginning with another one; and when the next opens.

        Both come from one look at the clock: an exchange that opens between two looks would be in
        neither, and the worker would sleep through it.
        """
        self._turn += 1
        now_ms, moment = self._server_clock.now_ms(), self._clock.monotonic()
        running, waits = list(self._networks), []
        for connector in self._connectors:
            stopped = connector.stopped(now_ms)
            exhausted_until = self._limiter.exhausted_until(connector.exchange_id)
            exhausted = exhausted_until - self._early_seconds - moment
            if stopped is not None:
                waits.append((stopped.retry_at_ms - now_ms) / 1000)
                continue
            most_jobs = connector.limits.max_concurrent_jobs
            is_spent = exhausted > 0
            if is_spent:
                waits.append(exhausted)
            running.append(JobPlace(connector.exchange_id, most_jobs, connector, is_spent))
        first = self._turn % len(running) if running else 0
        return OpenRound(running[first:] + running[:first], opens_in=min(waits, default=None))
