"""Counts of jobs: made by one process for all, and at a bounded cost.

Counting reads one index key for every job, which takes a seventh of a second for a hundred
thousand. So the workers share it as a turn (turn.py), and every other process reads the last
result.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from collector.clock import Clock, SystemClock
from collector.jobs.listing import BY_EXCHANGE_STATE
from collector.jobs.states import LIVE
from collector.jobs.turn import DutyTurn

if TYPE_CHECKING:
    from collector.mongo.client import Database

EVERY_MS = 7_000
"""Less than a worker's round, so that a single worker never finds its count not due yet."""
REST_PER_COST = 50
"""A count that took one second is not repeated for fifty, so it uses at most 2% of a core."""
OVERDUE_MS = 10_000
"""A count that is overdue by this much means that no worker is running."""


@dataclass(frozen=True, slots=True)
class JobCount:
    """Live jobs of one exchange that have the same status and state."""

    exchange_id: str
    status: str
    state: str
    count: int


class JobCounting:
    """The shared duty of counting jobs."""

    def __init__(self, database: Database, *, clock: Clock | None = None) -> None:
        self._jobs = database.jobs
        self._turn = DutyTurn(database, "count jobs")
        self._clock = clock or SystemClock()

    async def take_turn(self, *, late_ms: int = 0) -> list[JobCount] | None:
        """Counts for all processes when a count is due, and returns it; None when none is due."""
        token = await self._turn.take(late_ms=late_ms)
        if token is None:
            return None
        started = self._clock.monotonic()
        counts = await self.count()
        took_ms = round((self._clock.monotonic() - started) * 1000)
        await self._turn.end(
            token,
            {"counts": [asdict(each) for each in counts]},
            rest_ms=max(EVERY_MS, REST_PER_COST * took_ms),
        )
        return counts

    async def last(self) -> list[JobCount]:
        """The last count. Counts itself when it is overdue."""
        counts = await self.take_turn(late_ms=OVERDUE_MS)
        if counts is not None:
            return counts
        result = await self._turn.last_result()
        if result is None:
            return await self.count()  # Another process is making the very first count.
        return [JobCount(**each) for each in result["counts"]]

    async def count(self) -> list[JobCount]:
        """Counts now, by index alone."""
        same = {"exchange_id": "$exchange_id", "status": "$status", "state": "$state"}
        grouped = await self._jobs.aggregate(
            [
                {"$match": {"exchange_id": {"$gt": ""}, "status": {"$in": sorted(LIVE)}}},
                {"$group": {"_id": same, "count": {"$sum": 1}}},
            ],
            hint=BY_EXCHANGE_STATE.name,
        )
        return [JobCount(**group["_id"], count=group["count"]) for group in grouped]
