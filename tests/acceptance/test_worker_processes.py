"""Worker processes killed, stopped, drained and cut off."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from tests.support.cuttable_link import cuttable_link
from tests.support.link_address import through
from tests.support.processes import Process, patiently, program
from tests.support.until import until

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from collector.mongo.client import Database
    from collector.mongo.embedded import EmbeddedMongo

LEASE_MS = 3_000
JOBS, STEPS = 8, 200


def worker(uri: str, database: Database, **more: str) -> AbstractAsyncContextManager[Process]:
    return program(
        "tests.support.counting_worker",
        COLLECTOR_MONGO_URI=uri,
        COLLECTOR_MONGO_DB=database.raw.name,
        COLLECTOR_WORKER__LEASE_TTL_MS=str(LEASE_MS),
        COLLECTOR_WORKER__CONCURRENCY=str(JOBS // 2),
        **more,
    )


@pytest.fixture
async def queue(database: Database) -> JobQueue:
    await ConnectorRegistry(database).ensure("x", Limits(1_000_000, 1_000))
    return JobQueue(database)


async def add(queue: JobQueue, name: str = "a", steps: int = 10**9, step_ms: int = 20) -> Job:
    spec = JobSpec("x", "count", symbol=name, params={"steps": steps, "step_ms": step_ms})
    return (await queue.add(spec))[0]


async def reaches(queue: JobQueue, job: Job, page: int) -> None:
    async def there() -> bool:
        return (await queue.get(job.id)).cursor.page >= page

    await until(there, f"cursor at {page}")


async def holder(queue: JobQueue, job: Job) -> str:
    return str((await queue.get(job.id)).document["lock"]["locked_by"])


async def test_a_killed_workers_job_runs_elsewhere_when_its_lease_has_passed(
    database: Database, mongo_uri: str, queue: JobQueue
) -> None:
    job = await add(queue)
    async with worker(mongo_uri, database) as first:
        await reaches(queue, job, 3)
        async with worker(mongo_uri, database) as second:
            await until(lambda: said(second, "worker_started"), "the second worker is up")
            first.signal(signal.SIGKILL)
            await first.ended()
            killed_at = asyncio.get_running_loop().time()
            page = (await queue.get(job.id)).cursor.page
            await reaches(queue, job, page + 1)
            waited = asyncio.get_running_loop().time() - killed_at
    print(f"rescued after {waited:.1f} s with a lease of {LEASE_MS / 1000} s")
    assert waited <= LEASE_MS / 1000 + 30  # Wide room: the machine may be busy.
    assert (await queue.get(job.id)).fence == 2


async def said(process: Process, event: str) -> bool:
    return bool(process.lines(event))


async def test_a_worker_that_slept_through_its_lease_writes_nothing(
    database: Database, mongo_uri: str, queue: JobQueue
) -> None:
    job = await add(queue)
    async with worker(mongo_uri, database) as sleeper:
        await reaches(queue, job, 3)
        asleep = await holder(queue, job)
        sleeper.signal(signal.SIGSTOP)
        async with worker(mongo_uri, database) as other:
            await until(lambda: taken_over(queue, job, asleep), "the job is taken over")
            other.signal(signal.SIGTERM)
            assert await other.ended() == 0
        # Nobody runs it now: whatever changes its cursor would be the sleeper.
        await queue.pause(job.id)
        before = await queue.get(job.id)
        sleeper.signal(signal.SIGCONT)
        await until(lambda: said(sleeper, "lease_lost"), "the sleeper notices")
        sleeper.signal(signal.SIGTERM)
        assert await sleeper.ended() == 0
        assert len(sleeper.lines("lease_lost")) == 1
    after = await queue.get(job.id)
    assert (after.cursor, after.fence, after.state) == (before.cursor, before.fence, before.state)


async def taken_over(queue: JobQueue, job: Job, former: str) -> bool:
    return await holder(queue, job) not in (former, "None")


async def test_sigterm_drains_and_a_second_signal_ends_at_once(
    database: Database, mongo_uri: str, queue: JobQueue
) -> None:
    job = await add(queue)
    async with worker(mongo_uri, database) as process:
        await reaches(queue, job, 2)
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0
    given_back = await queue.get(job.id)
    assert (given_back.state, given_back.attempt) == (State.QUEUED, 0)
    await queue.delete(job.id)
    connectors = ConnectorRegistry(database)
    granted = (await connectors.get("x")).document["granted_total"]
    await add(queue, "stuck", step_ms=60_000)
    async with worker(mongo_uri, database) as process:

        async def has_its_token() -> bool:
            return (await connectors.get("x")).document["granted_total"] > granted

        await until(has_its_token, "the long step has begun")
        process.signal(signal.SIGTERM)
        await until(lambda: said(process, "draining"), "it drains")
        process.signal(signal.SIGTERM)
        assert await process.ended() == 128 + signal.SIGTERM


async def test_two_processes_upsert_the_same_connector_and_job_two_hundred_times(
    database: Database, mongo_uri: str
) -> None:
    arguments = (
        "tests.acceptance.upserter",
        f"--uri={mongo_uri}",
        f"--database={database.raw.name}",
    )
    async with program(*arguments) as one, program(*arguments) as two:
        made = [int(line) for p in (one, two) for line in (await p.output()).split()]
        assert [await one.ended(), await two.ended()] == [0, 0]
    assert made[0] + made[2] == 1
    assert made[1] + made[3] == 1
    assert await database.connectors.count_documents({}) == 1
    assert await database.jobs.count_documents({}) == 1


@pytest.fixture
async def own_queue(own_database: Database) -> JobQueue:
    await ConnectorRegistry(own_database).ensure("x", Limits(1_000_000, 1_000))
    return JobQueue(own_database)


async def all_done(queue: JobQueue) -> bool:
    jobs = await queue.find()
    return all(job.state is State.SUCCESS for job in jobs)


async def check_every_job_counted_right(queue: JobQueue) -> None:
    jobs = await queue.find()
    assert len(jobs) == JOBS
    assert all(job.cursor == Cursor(page=STEPS, done=True) for job in jobs)


async def test_mongod_killed_under_load_costs_nothing(
    own_mongo: EmbeddedMongo, own_database: Database, own_queue: JobQueue
) -> None:
    jobs = [await add(own_queue, str(n), STEPS) for n in range(JOBS)]
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(worker(own_mongo.uri, own_database)) for _ in range(2)
        ]
        await reaches(own_queue, jobs[0], 20)
        os.kill((await own_database.raw.command("serverStatus"))["pid"], signal.SIGKILL)
        await until(lambda: patiently(all_done(own_queue)), "all jobs are done")
        for process in workers:
            process.signal(signal.SIGTERM)
            assert await process.ended() == 0
            # A restart may be over before the driver gives up, and then nobody noticed.
            away, back = process.lines("mongodb_unreachable"), process.lines("mongodb_back")
            assert len(away) == len(back) <= 1
            assert "Traceback" not in process.said
    await check_every_job_counted_right(own_queue)


async def test_mongod_out_of_reach_for_longer_than_a_lease_costs_nothing(
    own_mongo: EmbeddedMongo, own_database: Database, own_queue: JobQueue
) -> None:
    async with cuttable_link(own_mongo.port) as link, AsyncExitStack() as stack:
        uri = through(link.port, own_mongo.uri)
        workers = [await stack.enter_async_context(worker(uri, own_database)) for _ in range(2)]
        for process in workers:
            await until(lambda p=process: said(p, "worker_started"), "it is up")
        jobs = [await add(own_queue, str(n), STEPS) for n in range(JOBS)]

        async def both_are_at_work() -> bool:
            # One that has just claimed its first job may not know it yet.
            begun = [job for job in jobs if (await own_queue.get(job.id)).cursor.page]
            holders = {await holder(own_queue, job) for job in begun}
            return len(holders - {"None"}) == 2

        await until(both_are_at_work, "both workers work on jobs")
        await link.cut()
        for process in workers:
            await until(lambda p=process: said(p, "lease_lost"), "it gives up its leases")
            await until(lambda p=process: said(p, "mongodb_unreachable"), "it says why")
        await link.mend()
        await until(lambda: patiently(all_done(own_queue)), "all jobs are done")
        for process in workers:
            process.signal(signal.SIGTERM)
            assert await process.ended() == 0
            assert len(process.lines("mongodb_unreachable")) == 1
            assert len(process.lines("mongodb_back")) == 1
            assert "Traceback" not in process.said
    await check_every_job_counted_right(own_queue)
