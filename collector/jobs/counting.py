"""What is known of all jobs together: counted by one worker, and read by every process.

A count reads an index key for every job, and the documents of backfills, of failing jobs and of
silent series. Its cost grows with the number of jobs, so the workers take turns at it (turn.py).
Whoever is asked reads the last count, which costs the same however many jobs there are. While no
worker is running, the process that is asked counts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from collector.clock import Clock, SystemClock
from collector.jobs.failing import FailingJobs, failing_jobs
from collector.jobs.history import BackfillCount, count_backfilled
from collector.jobs.lag import Reached, reached
from collector.jobs.listing import BY_EXCHANGE_STATE
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.states import LIVE, Status
from collector.jobs.turn import DutyTurn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.mongo.client import Database

REST_PER_COST = 20
"""A count that took one second is not repeated for twenty, so it uses at most 5% of a core."""
EVERY_MS = 1_500
"""How long workers leave a count that is due: a cheap one is not repeated all the time."""
OVERDUE_MS = 15_000
"""A count that is overdue by this much means that the workers do not count."""


@dataclass(frozen=True, slots=True)
class JobCount:
    """Live jobs of one exchange that have the same status and state."""

    exchange_id: str
    status: str
    state: str
    count: int


@dataclass(frozen=True, slots=True)
class Counts:
    """All jobs at one moment."""

    counted_ms: int
    """When they were counted, in epoch ms of the server's clock."""
    jobs: tuple[JobCount, ...] = ()
    backfills: tuple[BackfillCount, ...] = ()
    failing: tuple[FailingJobs, ...] = ()
    reached: tuple[Reached, ...] = ()

    @property
    def live(self) -> Counter[str]:
        """Per exchange, how many jobs there are that are not deleted."""
        return _by_exchange(self.jobs)

    @property
    def active(self) -> Counter[str]:
        """Per exchange, how many of them no operator has stopped."""
        return _by_exchange(each for each in self.jobs if each.status == Status.ACTIVE)

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> Self:
        """From the result of a turn."""
        return cls(
            result["counted_ms"],
            tuple(JobCount(**each) for each in result["jobs"]),
            tuple(BackfillCount(**each) for each in result["backfills"]),
            tuple(FailingJobs(**each) for each in result["failing"]),
            tuple(Reached(**each) for each in result["reached"]),
        )


class JobCounting:
    """The shared duty of counting jobs."""

    def __init__(self, database: Database, *, clock: Clock | None = None) -> None:
        self._database = database
        self._turn = DutyTurn(database, "count")
        self._one = asyncio.Lock()
        """Held by the request that counts: others do not wait for it."""
        self._clock = clock or SystemClock()

    async def take_turn(self, *, late_ms: int = 0) -> Counts | None:
        """Counts for all processes if a count has been due for `late_ms`, and returns it."""
        if self._one.locked():
            return None
        async with self._one:
            if not await self._turn.take(late_ms=late_ms):
                return None
            started = self._clock.monotonic()
            counts = await self.count()
            took_ms = round((self._clock.monotonic() - started) * 1000)
            await self._turn.end(asdict(counts), rest_ms=REST_PER_COST * took_ms)
            return counts

    async def last(self) -> Counts:
        """The last count. Counts itself when no worker does."""
        is_alone = not await LiveWorkers(self._database).count()
        counts = await self.take_turn(late_ms=0 if is_alone else OVERDUE_MS)
        if counts is not None:
            return counts
        result = await self._turn.last_result()
        # Without a result, another process is making the very first count.
        return await self.count() if result is None else Counts.read(result)

    async def count(self) -> Counts:
        """Counts now."""
        return Counts(
            await self._database.now_ms(),
            tuple(await self._job_counts()),
            tuple(await count_backfilled(self._database)),
            tuple(await failing_jobs(self._database)),
            tuple(await reached(self._database)),
        )

    async def _job_counts(self) -> list[JobCount]:
        """By index alone."""
        same = {"exchange_id": "$exchange_id", "status": "$status", "state": "$state"}
        grouped = await self._database.jobs.aggregate(
            [
                {"$match": {"exchange_id": {"$gt": ""}, "status": {"$in": sorted(LIVE)}}},
                {"$group": {"_id": same, "count": {"$sum": 1}}},
            ],
            hint=BY_EXCHANGE_STATE.name,
        )
        return [JobCount(**group["_id"], count=group["count"]) for group in grouped]


def _by_exchange(counts: Iterable[JobCount]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total[each.exchange_id] += each.count
    return total
