"""How long after `JobQueue.run` or `add` an idle worker is inside the job's handler.

By change stream and, for comparison, by polling alone. The time includes the caller's own write.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.schedule import Every
from collector.jobs.states import State
from tests.bench.harness import Bench, Figure, percentile
from tests.bench.working import working
from workers.handlers.registry import Again
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from workers.handlers.registry import Outcome
    from workers.job_run import JobRun

EXCHANGE, TYPE = "bench", "bench"
HOURLY = Every(3_600_000)
P50_LIMIT_MS = 100


@dataclass(frozen=True, slots=True)
class Way:
    """How the worker learns that there is work."""

    title: str
    poll_seconds: float
    watching: bool = False
    adding: bool = False
    """Whether a new job is added, instead of an old one being run."""


WAYS = {
    Way("change stream, run", 2.0, watching=True): (100, 15),
    Way("change stream, add", 2.0, watching=True, adding=True): (100, 15),
    Way("polling 0.1 s, run", 0.1): (100, 15),
    Way("polling 1.0 s, run", 1.0): (20, 3),
}
"""Each way with its number of runs in the full and in the short form."""


async def run(bench: Bench) -> list[Figure]:
    # At the same time: they mostly sleep, and each has a database and a worker of its own.
    measured = await asyncio.gather(
        *(_measure(bench, way, bench.pick(*runs)) for way, runs in WAYS.items())
    )
    by_title = {way.title: waits for way, waits in zip(WAYS, measured, strict=True)}
    bench.show(
        "from the call to the handler's first instruction, ms",
        ["way", "p50", "p99", "runs"],
        [
            [title, percentile(waits, 0.5), percentile(waits, 0.99), len(waits)]
            for title, waits in by_title.items()
        ],
    )
    return [
        Figure(
            f"wakeup.{way.title} p50",
            percentile(by_title[way.title], 0.5),
            " ms",
            at_most=P50_LIMIT_MS if way.watching else None,
        )
        for way in WAYS
    ]


async def _measure(bench: Bench, way: Way, runs: int) -> list[float]:
    async with bench.database() as database:
        await ConnectorRegistry(database).ensure(EXCHANGE, Limits(1_000, 1_000))
        begun: asyncio.Queue[float] = asyncio.Queue()

        async def handle(_run: JobRun) -> Outcome:
            begun.put_nowait(time.monotonic())
            return Again()

        config = WorkerConfig("bench", poll_seconds=way.poll_seconds)
        async with working(database, {TYPE: handle}, config, watching=way.watching):
            call = _caller(JobQueue(database), way)
            waits = []
            for number in range(-2, runs):  # two to warm up
                await _at_rest(database)
                # Somewhere between two polls, if they are what matters.
                await asyncio.sleep(random.random() * (0.1 if way.watching else way.poll_seconds))
                called = time.monotonic()
                await call(number)
                wait_ms = (await begun.get() - called) * 1000
                if number >= 0:
                    waits.append(wait_ms)
    return waits


def _caller(queue: JobQueue, way: Way) -> Callable[[int], Awaitable[object]]:
    """What asks for work: a new job each time, or one job again and again."""
    job: Job | None = None

    async def call(number: int) -> object:
        nonlocal job
        if way.adding or job is None:
            spec = JobSpec(EXCHANGE, TYPE, symbol=f"{number}", schedule=HOURLY)
            job, _ = await queue.add(spec)
            return job
        return await queue.run(job.id)

    return call


async def _at_rest(database: Database) -> None:
    """Until no job runs or waits to run: the worker is idle."""
    busy = {"state": {"$in": [State.QUEUED.value, State.RUNNING.value]}}
    while await database.jobs.count_documents(busy):
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)  # and has looked around once more
