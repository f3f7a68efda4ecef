"""A worker in this process, on a real mongod."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector import metrics
from collector.backoff import Backoff
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import ExchangeUnavailable, NeedsOperator
from collector.jobs import schedule
from collector.jobs.job import JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.runs import RunHistory
from collector.jobs.states import State, Status
from collector.lease_terms import LeaseTerms
from tests.support.counting import count
from tests.support.until import until, until_job
from workers.handlers.registry import Again, Done, HandlerRegistry, Outcome
from workers.runtime import Worker, WorkerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database
    from workers.handlers.registry import Handler
    from workers.job_run import JobRun

# Polling alone would not find anything within a test: what starts was woken.
CONFIG = WorkerConfig("ann", poll_seconds=60, patience=0.05, retry=Backoff(60, 60))


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
async def registry(database: Database) -> ConnectorRegistry:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(1000, 1000))
    return registry


@asynccontextmanager
async def working(
    database: Database,
    handlers: dict[str, Handler] | None = None,
    config: WorkerConfig = CONFIG,
    terms: LeaseTerms | None = None,
) -> AsyncIterator[Worker]:
    """A worker that drains when the block ends."""
    async with Limiter(database) as limiter:
        registry = HandlerRegistry({"count": count, **(handlers or {})})
        worker = Worker(database, limiter, registry, config, terms=terms)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.drain()
            await asyncio.wait_for(running, 120)


async def test_a_job_runs_to_its_end_and_leaves_a_record(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count", params={"steps": 3}))
    async with working(database):
        done = await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert done.status is Status.PAUSED
    assert (done.cursor.page, done.cursor.done) == (3, True)
    assert (await registry.get("x")).document["granted_total"] == 3
    (run,) = await RunHistory(database).of(job.id)
    assert (run["outcome"], run["pages"], run["tokens"], run["fence"]) == ("done", 3, 3, 1)


async def test_a_new_job_and_a_run_now_wake_an_idle_worker(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    async with working(database):
        spec = JobSpec("x", "count", params={"repeat": True}, schedule=schedule.Every(3_600_000))
        job, _ = await queue.add(spec)
        await until_job(queue, job, lambda job: job.document["stats"]["success"] == 1)
        await queue.run(job.id)
        await until_job(queue, job, lambda job: job.document["stats"]["success"] == 2)


async def test_a_timer_starts_the_next_due_job_on_time(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    soon = database.server_clock.now_ms() + 300
    job, _ = await queue.add(JobSpec("x", "count", first_run_ms=soon))
    async with working(database):
        done = await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert done.document["stats"]["last_run_at"] >= soon


async def test_out_of_tokens_the_job_waits_for_the_reset_and_goes_on(
    database: Database, queue: JobQueue
) -> None:
    await ConnectorRegistry(database).ensure("x", Limits(2, 2_000))
    job, _ = await queue.add(JobSpec("x", "count", params={"steps": 5}))
    async with working(database):
        waiting = await until_job(queue, job, lambda job: job.state is State.WAITING)
        assert waiting.cursor.page == 2
        assert waiting.document["waiting_for"] == "window"
        assert waiting.attempt == 0
        done = await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert done.cursor.page == 5


async def test_errors_end_in_the_reaction_they_name(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    async def passing(run: JobRun) -> Outcome:
        raise ExchangeUnavailable("the venue said 502")

    async def lasting(run: JobRun) -> Outcome:
        raise NeedsOperator("BTC/USDX is not a symbol of x")

    async def defect(run: JobRun) -> Outcome:
        raise ZeroDivisionError("oops")

    handlers: dict[str, Handler] = {"passing": passing, "lasting": lasting, "defect": defect}
    jobs = {name: (await queue.add(JobSpec("x", name)))[0] for name in handlers}
    async with working(database, handlers):
        for name, job in jobs.items():
            jobs[name] = await until_job(queue, job, lambda job: job.document["stats"]["fail"] == 1)
    ends = {name: (job.state, job.document["stats"]["last_error"]) for name, job in jobs.items()}
    assert ends == {
        "passing": (State.IDLE, "the venue said 502"),
        "lasting": (State.FAILED, "BTC/USDX is not a symbol of x"),
        "defect": (State.IDLE, "ZeroDivisionError: oops"),
    }
    assert jobs["passing"].attempt == 1


async def test_draining_finishes_the_step_and_gives_the_attempt_back(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(run: JobRun) -> Outcome:
        while True:
            await run.token()
            entered.set()
            await leave.wait()
            await run.commit(replace(run.cursor, page=run.cursor.page + 1))

    job, _ = await queue.add(JobSpec("x", "slow"))
    async with working(database, {"slow": slow}) as worker:
        await entered.wait()
        worker.drain()
        leave.set()
    given_back = await queue.get(job.id)
    assert (given_back.state, given_back.attempt, given_back.cursor.page) == (State.QUEUED, 0, 1)
    assert given_back.document["lock"]["locked_by"] is None


async def test_pausing_stops_a_running_job_after_its_page(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count", params={"steps": 10_000, "step_ms": 5}))
    async with working(database):
        await until_job(queue, job, lambda job: job.cursor.page > 2)
        await queue.pause(job.id)
        paused = await until_job(queue, job, lambda job: job.state is State.IDLE)
        await queue.resume(job.id)
        await until_job(queue, job, lambda job: job.cursor.page > paused.cursor.page + 2)


async def test_a_lease_taken_by_someone_else_ends_the_run_with_one_count(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    cancelled = asyncio.Event()

    async def hanging(run: JobRun) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Done()

    job, _ = await queue.add(JobSpec("x", "hanging"))
    before = metrics.LEASE_LOST._value.get()
    # With room for one job ann cannot take back what is made to look expired: only bob can.
    alone = replace(CONFIG, concurrency=1)
    async with working(database, {"hanging": hanging}, alone, terms=LeaseTerms(900)):
        await until_job(queue, job, lambda job: job.state is State.RUNNING)
        await database.jobs.update_one({"_id": job.id}, {"$set": {"next_run_at": 1}})
        bob = Leasing(database, "bob")
        async with asyncio.timeout(120):
            while not (stolen := await bob.claim("x")):
                await database.jobs.update_one({"_id": job.id}, {"$set": {"next_run_at": 1}})
            await cancelled.wait()
    held = await queue.get(job.id)
    assert (held.state, held.fence) == (State.RUNNING, stolen[0].fence)
    assert metrics.LEASE_LOST._value.get() == before + 1


async def test_a_long_job_keeps_its_lease(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count", params={"steps": 1, "step_ms": 4_500}))
    async with working(database, terms=LeaseTerms(3_000)):
        done = await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert done.fence == 1


async def test_the_ceiling_of_jobs_at_a_time_holds_across_workers(
    database: Database, queue: JobQueue
) -> None:
    await ConnectorRegistry(database).ensure("x", Limits(1000, 1000, max_concurrent_jobs=2))
    running = most = 0
    two_run = asyncio.Event()

    async def busy(run: JobRun) -> Outcome:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            two_run.set()
        await two_run.wait()
        await asyncio.sleep(0.02)
        running -= 1
        return Done()

    jobs = [(await queue.add(JobSpec("x", "busy", symbol=str(n))))[0] for n in range(12)]
    eager = replace(CONFIG, poll_seconds=0.05)
    async with (
        working(database, {"busy": busy}, replace(eager, worker_id="ann")),
        working(database, {"busy": busy}, replace(eager, worker_id="bob")),
    ):
        for job in jobs:
            await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert most == 2


@pytest.mark.parametrize("closed", ["pause", "block"])
async def test_a_closed_exchange_holds_up_nobody_else(
    database: Database, registry: ConnectorRegistry, queue: JobQueue, closed: str
) -> None:
    await registry.ensure("y", Limits(1000, 1000))
    stuck = [(await queue.add(JobSpec("x", "count", symbol=str(n))))[0] for n in range(50)]
    if closed == "pause":
        await registry.pause("x")
    else:
        await registry.block("x", "418", for_ms=60_000)
    job, _ = await queue.add(JobSpec("y", "count"))
    async with working(database, config=replace(CONFIG, concurrency=2)):
        await until_job(queue, job, lambda job: job.state is State.SUCCESS)
        assert (await queue.get(stuck[0].id)).state is State.QUEUED
        await (registry.resume("x") if closed == "pause" else registry.unblock("x"))
        for waiting in stuck:
            await until_job(queue, waiting, lambda job: job.state is State.SUCCESS)


async def test_until_idle_ends_by_itself(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count", params={"steps": 2}))
    await queue.add(JobSpec("x", "count", symbol="later", first_run_ms=10**14))
    config = replace(CONFIG, until_idle=True)
    async with Limiter(database) as limiter, asyncio.timeout(120):
        await Worker(database, limiter, HandlerRegistry({"count": count}), config).run()
    assert (await queue.get(job.id)).state is State.SUCCESS


async def test_a_repeating_job_goes_by_its_schedule(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    runs = 0

    async def tick(run: JobRun) -> Outcome:
        nonlocal runs
        runs += 1
        return Again()

    job, _ = await queue.add(JobSpec("x", "tick", schedule=schedule.Every(100)))
    async with working(database, {"tick": tick}):
        await until_job(queue, job, lambda job: job.document["stats"]["success"] >= 3)
    assert (await queue.get(job.id)).state is State.IDLE
    assert runs >= 3


async def test_a_worker_is_seen_while_it_lives(
    database: Database, registry: ConnectorRegistry
) -> None:
    async def seen() -> list[dict[str, Any]]:
        return await database.workers.find({})

    async with working(database):
        entries = await until(seen, "the worker is seen")
        assert entries[0]["_id"] == "ann"
    assert await seen() == []
