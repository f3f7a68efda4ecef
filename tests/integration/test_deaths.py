"""Which jobs are held to kill their workers, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs import settlement
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.lease import KILLS_BEFORE_ALONE
from collector.jobs.lease_statements import SET_ASIDE
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from tests.support.until import until, until_job
from workers.handlers.registry import Done, HandlerRegistry, Outcome
from workers.runtime import Worker, WorkerConfig

if TYPE_CHECKING:
    from collector.jobs.job import Job
    from collector.jobs.lease import Lease
    from collector.mongo.client import Database
    from workers.job_run import JobRun


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


class Mortal:
    """Workers that die, one after another, each in the middle of what it claimed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._born = 0

    async def die(self, *, alone: bool = False) -> Lease:
        """The next worker claims a job, and is never heard of again."""
        self._born += 1
        leasing = Leasing(self._database, f"worker-{self._born}")
        (lease,) = await leasing.claim("x")
        if alone:
            await leasing.mark_alone(lease)
        await expire(self._database, lease.job)
        return lease


async def expire(database: Database, job: Job) -> None:
    """Lets the lease's time pass."""
    await database.jobs.update_one(
        {"_id": job.id}, {"$set": {"lock.lock_until": 1, "next_run_at": 1}}
    )


async def some_job(queue: JobQueue, name: str = "a", **fields: Any) -> Job:
    return (await queue.add(JobSpec("x", "count", symbol=name, **fields)))[0]


async def test_a_job_that_shared_a_process_is_a_suspect_and_never_condemned(
    database: Database, queue: JobQueue
) -> None:
    mortal = Mortal(database)
    job = await some_job(queue)
    suspect = [(await mortal.die()).suspect for _ in range(20)]
    assert suspect == [False] * KILLS_BEFORE_ALONE + [True] * (20 - KILLS_BEFORE_ALONE)
    assert (await queue.get(job.id)).status is Status.ACTIVE


async def test_a_job_that_had_three_dead_workers_to_itself_is_set_aside(
    database: Database, queue: JobQueue
) -> None:
    mortal = Mortal(database)
    job = await some_job(queue, "deadly", priority=1)
    await some_job(queue, "harmless", priority=2)
    for _ in range(3):
        assert (await mortal.die(alone=True)).job.symbol == "deadly"
    assert (await mortal.die()).job.symbol == "harmless"
    aside = await queue.get(job.id)
    assert (aside.state, aside.status) == (State.FAILED, Status.PAUSED)
    assert aside.document["stats"]["last_error"] == SET_ASIDE
    # A person may try again; the deaths no longer count.
    await queue.run(job.id)
    again = await mortal.die()
    assert (again.job.symbol, again.kills) == ("deadly", 0)


async def test_progress_and_an_orderly_end_forgive_earlier_deaths(
    database: Database, queue: JobQueue
) -> None:
    mortal, ann = Mortal(database), Leasing(database, "ann")
    job = await some_job(queue)
    for _ in range(4):
        await mortal.die(alone=True)
        await mortal.die(alone=True)
        (lease,) = await ann.claim("x")
        assert lease.kills == 2
        await ann.commit(lease, Cursor(page=1))
        await ann.settle(lease, settlement.give_back())
    await mortal.die()
    (lease,) = await ann.claim("x")
    assert lease.kills == 1
    await ann.commit(lease, Cursor(page=2))
    await expire(database, job)
    (lease,) = await Leasing(database, "bob").claim("x")
    assert lease.kills == 1, "what came before the progress was counted"


async def test_a_worker_that_takes_its_own_job_again_has_not_died(
    database: Database, queue: JobQueue
) -> None:
    ann = Leasing(database, "ann")
    job = await some_job(queue)
    for _ in range(5):
        (lease,) = await ann.claim("x")
        assert lease.kills == 0
        await expire(database, job)


async def test_an_outage_of_mongodb_kills_nobody(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    mortal = Mortal(database)
    job = await some_job(queue)
    await mortal.die()
    monkeypatch.setattr(database, "stalled", lambda within, at_least: True)
    for _ in range(5):
        await mortal.die()
    assert (await queue.get(job.id)).document["kills"] == 0


async def test_a_claim_that_was_under_way_while_the_server_stood_still_counts_no_death(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one on a clock that was set forward: the lease ran out on paper only."""
    mortal = Mortal(database)
    job = await some_job(queue)
    await mortal.die()
    now = database.server_clock.now_ms
    monkeypatch.setattr(database.server_clock, "now_ms", lambda: now() - 60_000)
    await mortal.die()
    assert (await queue.get(job.id)).document["kills"] == 0


async def test_a_suspect_has_its_worker_to_itself_until_it_comes_further(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the round of claims after its own takes its time."""
    server_now_ms = database.now_ms

    async def slow_now_ms() -> int:
        await asyncio.sleep(0.05)
        return await server_now_ms()

    monkeypatch.setattr(database, "now_ms", slow_now_ms)
    await ConnectorRegistry(database).ensure("x", Limits(1000, 1000))
    at_work: list[str] = []
    seen: dict[str, list[str]] = {}
    others_are_back, further = asyncio.Event(), asyncio.Event()

    async def other(run: JobRun) -> Outcome:
        at_work.append(str(run.job.symbol))
        if further.is_set():
            others_are_back.set()
        try:
            while True:
                run.check()
                await asyncio.sleep(0.005)
        finally:
            at_work.remove(str(run.job.symbol))

    async def suspicious(run: JobRun) -> Outcome:
        seen["when it began"] = list(at_work)
        for _ in range(20):
            await asyncio.sleep(0.005)
        seen["meanwhile"] = list(at_work)
        further.set()
        await run.commit(run.cursor)
        await others_are_back.wait()
        return Done()

    harmless = [
        (await queue.add(JobSpec("x", "other", symbol=name, priority=1)))[0] for name in "abc"
    ]
    handlers = HandlerRegistry({"other": other, "suspicious": suspicious})
    async with Limiter(database) as limiter:
        worker = Worker(database, limiter, handlers, WorkerConfig("ann", poll_seconds=0.1))
        running = asyncio.create_task(worker.run())
        await until(lambda: len(at_work) >= 3, "three jobs are at work")
        suspect, _ = await queue.add(JobSpec("x", "suspicious", first_run_ms=2**52))
        await database.jobs.update_one(
            {"_id": suspect.id},
            {"$set": {"kills": KILLS_BEFORE_ALONE, "next_run_at": 1, "wake": 1.0}},
        )
        await until_job(queue, suspect, lambda job: job.state is State.SUCCESS)
        worker.drain()
        await running
    assert seen == {"when it began": [], "meanwhile": []}
    for job in harmless:
        assert (await queue.get(job.id)).state is State.QUEUED
