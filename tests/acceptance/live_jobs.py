"""Live jobs of a fleet, and what it means that they go on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.schedule import Every
from collector.jobs.states import State, Status
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from tests.support.processes import patiently
from tests.support.stored_series import check_stored
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from bson import ObjectId

    from tests.support.fleet import Fleet

    Complaint = Callable[[Job, int], str | None]
    """What is wrong with a job that had so many successes when the wait began."""

MINUTE = Timeframe.parse("1m")
EVERY_MS = 1_000
"""Much more often than bars close: a job that misses a turn is seen within seconds."""
BEHIND = 5
"""Bars that have closed when a job is added, so that its first run has something to ask for."""
WITHIN_SECONDS = 120
"""How soon everything has to run again."""
YOUNG_MS = 10_000
"""A bar that closed so recently need not be there yet."""
PATIENCE = 20
"""Times its interval that a run may take on average where others want the same budget."""
LOOK_EVERY = 0.2


@dataclass(frozen=True)
class LiveJobs:
    """Jobs for what is new, each of a market of its own, as they were when they were added."""

    fleet: Fleet
    jobs: tuple[Job, ...]

    @classmethod
    async def add(
        cls,
        fleet: Fleet,
        count: int,
        *,
        exchange_id: str = "simulated",
        kind: str = "ohlcv_incremental",
    ) -> LiveJobs:
        """Of the last markets, as backfills are of the first. Due at once."""
        since = MINUTE.floor(fleet.exchange.now_ms()) - BEHIND * MINUTE.ms
        specs = [
            JobSpec(
                exchange_id,
                kind,
                market.symbol,
                MINUTE.name if kind.startswith("ohlcv") else None,
                schedule=Every(EVERY_MS),
                cursor=Cursor(since_ms=since),
            )
            for market in fleet.exchange.truth.listings[-count:]
        ]
        added = await asyncio.gather(*(fleet.queue.add(spec) for spec in specs))
        return cls(fleet, tuple(job for job, _ in added))

    async def now(self) -> list[Job]:
        ids = [job.id for job in self.jobs]
        documents = await self.fleet.database.jobs.find({"_id": {"$in": ids}})
        return [Job.from_document(document) for document in documents]

    async def go_on(self) -> None:
        """Returns when each has run well once more and has every bar; nobody helps them."""
        await self._until(lambda job, before: _complaint(job, before + 1) or self._lag(job))

    async def keep_their_cadence(self, runs: int) -> None:
        """Returns when each has run well so many times more, waits for the budget included."""
        seconds = PATIENCE * runs * EVERY_MS / 1000
        await self._until(lambda job, before: _complaint(job, before + runs), seconds)

    async def run_again(self) -> None:
        """Returns when each has run well once more."""
        await self._until(lambda job, before: _complaint(job, before + 1))

    async def fences(self) -> int:
        """How often they were leased, all together."""
        return sum(job.fence for job in await self.now())

    async def check_equal_to_the_truth(self) -> None:
        """What each has stored up to its cursor is what happened."""
        began = {job.id: job.cursor.since_ms for job in self.jobs}
        truth, root = self.fleet.exchange.truth, self.fleet.root
        for job in await self.now():
            series = Series.of(job.exchange_id, str(job.symbol), MINUTE.name)
            check_stored(root, series, truth, began[job.id], job.cursor.since_ms)

    async def _until(self, complaint: Complaint, seconds: float = WITHIN_SECONDS) -> None:
        successes: dict[ObjectId, int] = {}
        complaints = ["MongoDB never answered"]

        async def content() -> bool:
            await asyncio.sleep(LOOK_EVERY)
            jobs = await self.now()
            for job in jobs:
                successes.setdefault(job.id, job.document["stats"]["success"])
            found = (complaint(job, successes[job.id]) for job in jobs)
            complaints[:] = [words for words in found if words]
            return not complaints or any(_stopped(job) for job in jobs)

        with suppress(AssertionError):
            await until(lambda: patiently(content()), "every live job goes on", seconds)
        count = f"{len(complaints)} of {len(self.jobs)} live jobs do not go on"
        assert not complaints, f"{count}: {complaints[:3]}"

    def _lag(self, job: Job) -> str | None:
        wanted = MINUTE.floor(self.fleet.exchange.now_ms() - YOUNG_MS)
        behind = (wanted - job.cursor.since_ms) // MINUTE.ms
        return f"{job.symbol} is {behind} bars behind" if behind > 0 else None


def _stopped(job: Job) -> bool:
    """Whether it waits for a person: there is nothing to wait for."""
    return job.status is not Status.ACTIVE or job.state is State.FAILED


def _complaint(job: Job, successes: int) -> str | None:
    stats = job.document["stats"]
    if not _stopped(job) and stats["success"] >= successes:
        return None
    waits = f"waiting for {job.document['waiting_for']}, attempt {job.attempt}"
    return f"{job.symbol} is {job.status}, {job.state}, {waits}: {stats['last_error']}"
