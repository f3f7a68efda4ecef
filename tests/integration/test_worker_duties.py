"""A worker lives through what MongoDB does to its duties."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count as count_from
from typing import TYPE_CHECKING, Any

import pytest
from bson import ObjectId
from pymongo.errors import OperationFailure

from collector.backoff import Backoff
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs import schedule
from collector.jobs.job import Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.runs import Run, RunHistory
from collector.jobs.states import State, Status
from collector.mongo.client import Collection
from tests.support.counting import count
from tests.support.until import until, until_job
from workers import claiming
from workers.handlers.registry import Again, HandlerRegistry, Outcome
from workers.reactions import JOB_RETRY
from workers.runtime import Worker, WorkerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database
    from workers.handlers.registry import Handler
    from workers.job_run import JobRun


@pytest.fixture
async def queue(database: Database) -> JobQueue:
    await ConnectorRegistry(database).ensure("x", Limits(1000, 1000))
    return JobQueue(database)


@asynccontextmanager
async def working(
    database: Database, name: str = "ann", *, retry: Backoff | None = None, **handlers: Handler
) -> AsyncIterator[Worker]:
    """A worker that drains when the block ends."""
    async with Limiter(database) as limiter:
        registry = HandlerRegistry({"count": count, **handlers})
        config = WorkerConfig(name, poll_seconds=0.1, retry=retry or JOB_RETRY)
        worker = Worker(database, limiter, registry, config)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
            assert not running.done(), "the worker has ended by itself"
        finally:
            worker.drain()
            await asyncio.wait_for(running, 120)


def a_run(job: Job) -> Run:
    return Run(job, "ann", fence=1, started_ms=1, ended_ms=2, outcome="done")


async def test_a_history_whose_answer_was_lost_is_written_once(
    database: Database, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count"))
    history = RunHistory(database)
    for _ in range(3):
        history.record(a_run(job))
    held = list(history._held)
    await history.flush()
    history._held = [*held, *history._held]
    history.record(a_run(job))
    await history.flush()
    assert len(await history.of(job.id)) == 4
    assert history._held == []


@pytest.mark.parametrize("code", [11601, 262, 43, 202, 6, 59])
async def test_a_server_error_in_a_duty_ends_no_worker(
    database: Database, queue: JobQueue, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever statement it hits: claims, renewals, settlements, counts, the history."""
    job, _ = await queue.add(JobSpec("x", "count", params={"steps": 5, "step_ms": 20}))
    fairly, calls = database.fairly, count_from(1)

    async def failing(*_args: Any, **_options: Any) -> Any:
        raise OperationFailure("the server says no", code)

    async def sometimes(operation: Any, *args: Any, **options: Any) -> Any:
        number = next(calls)
        unlucky = number % 3 == 0 and number < 75
        return await fairly(failing if unlucky else operation, *args, **options)

    async with working(database, retry=Backoff(0.05, 0.05)):
        for collection in vars(database).values():
            if isinstance(collection, Collection):
                monkeypatch.setattr(collection, "_fairly", sometimes)

        async def succeeded() -> bool:
            return bool(await fairly(queue_state, database, job) == State.SUCCESS)

        await until(succeeded, "the job succeeds all the same")


async def queue_state(database: Database, job: Job) -> str:
    found = await database.raw["jobs"].find_one({"_id": job.id})
    return str(found and found["state"])


async def test_a_job_that_runs_once_runs_once(database: Database, queue: JobQueue) -> None:
    runs = 0

    async def dutiful(run: JobRun) -> Outcome:
        nonlocal runs
        runs += 1
        return Again()

    job, _ = await queue.add(JobSpec("x", "dutiful", schedule=schedule.Once()))
    async with working(database, dutiful=dutiful):
        done = await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert (runs, done.status) == (1, Status.PAUSED)


async def test_a_schedule_changed_during_a_run_takes_effect_at_its_end(
    database: Database, queue: JobQueue
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(run: JobRun) -> Outcome:
        entered.set()
        await leave.wait()
        return Again()

    job, _ = await queue.add(JobSpec("x", "slow", schedule=schedule.Every(3_600_000)))
    async with working(database, slow=slow):
        await entered.wait()
        soon = database.server_clock.now_ms() + 60_000
        await queue.change(job.id, schedule=schedule.Every(60_000), next_run_ms=soon)
        leave.set()
        rested = await until_job(queue, job, lambda job: job.state is State.IDLE)
    assert rested.next_run_at == soon
    assert rested.document["next_after_run"] is None


async def test_a_pause_is_heard_between_two_steps_of_a_duty_that_commits_nothing(
    database: Database, queue: JobQueue
) -> None:
    steps = 0

    async def upkeep(run: JobRun) -> Outcome:
        nonlocal steps
        for _ in range(100_000):
            run.check()
            steps += 1
            await asyncio.sleep(0.005)
        return Again()

    job, _ = await queue.add(JobSpec("x", "upkeep", schedule=schedule.Every(3_600_000)))
    async with working(database, upkeep=upkeep):
        await until_job(queue, job, lambda _: steps > 3)
        await queue.pause(job.id)
        paused = await until_job(queue, job, lambda job: job.state is State.IDLE)
    assert paused.status is Status.PAUSED
    assert steps < 5_000


async def test_a_wrong_clock_makes_nobody_lease_the_same_job_again_and_again(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that is ten minutes late the next run of every job lies in the past."""
    runs = 0

    async def idle(run: JobRun) -> Outcome:
        nonlocal runs
        runs += 1
        return Again()

    clock = database.server_clock
    assert clock._far._offset_ms is not None
    clock._far._offset_ms -= 600_000
    monkeypatch.setattr(clock, "_latest", 0)
    jobs = [
        (await queue.add(JobSpec("x", "idle", symbol=name, schedule=schedule.Every(60_000))))[0]
        for name in "abc"
    ]
    async with working(database, idle=idle):
        for job in jobs:
            await until_job(queue, job, lambda job: job.document["stats"]["success"] > 0)
        for _ in range(50):
            await asyncio.sleep(0.01)
        assert runs <= 6
    real = (await database.read_server_clock()).timestamp() * 1000
    assert abs(clock.now_ms() - real) < 60_000


async def test_jobs_planned_by_a_clock_that_was_set_back_come_sooner(
    database: Database, queue: JobQueue
) -> None:
    """The worker was started after the step: it has never read the clock that was ahead."""
    now = database.server_clock.now_ms()
    job, _ = await queue.add(
        JobSpec("x", "count", first_run_ms=now + 600_000, schedule=schedule.Every(60_000))
    )
    await database.system.update_one(
        {"_id": "clock"}, {"$set": {"latest_ms": now + 600_000}}, upsert=True
    )
    async with working(database):
        await until_job(queue, job, lambda job: job.state is State.SUCCESS)


async def test_a_handful_of_jobs_is_spread_over_the_workers(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "TWINS_FRESH_SECONDS", 0.1)
    # On a busy machine the other one may need longer than it is waited for.
    monkeypatch.setattr(claiming, "MOST_PASSES", 10_000)

    async def long(run: JobRun) -> Outcome:
        while True:
            run.check()
            await asyncio.sleep(0.01)

    async with (
        working(database, "ann", long=long) as ann,
        working(database, "bob", long=long) as bob,
    ):

        async def all_run() -> bool:
            return len(await running_by(database)) >= 4

        twins = (ann._claiming, bob._claiming)
        await until(lambda: {each._twins for each in twins} == {2}, "both know of each other")
        for name in "abcd":
            await queue.add(JobSpec("x", "long", symbol=name))
        await until(all_run, "all four run")
        assert sorted(await running_by(database)) == ["ann", "ann", "bob", "bob"]


async def running_by(database: Database) -> list[str]:
    return [job["lock"]["locked_by"] for job in await database.jobs.find({"state": "running"})]


async def test_a_success_is_not_recorded_by_a_run_that_lost_its_lease(
    database: Database, queue: JobQueue
) -> None:
    async def robbed(run: JobRun) -> Outcome:
        await database.jobs.update_one({"_id": run.job.id}, {"$inc": {"fence": 1}})
        return Again()

    job, _ = await queue.add(JobSpec("x", "robbed", schedule=schedule.Every(3_600_000)))
    async with working(database, robbed=robbed):
        await until_job(queue, job, lambda job: job.fence == 2)
    assert await RunHistory(database).of(job.id) == []


async def test_over_the_ceiling_the_least_urgent_are_given_back(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ConnectorRegistry(database).change_limits("x", {"max_concurrent_jobs": 2})
    count_documents = Collection.count_documents
    looks = count_from(1)

    async def late(self: Any, *args: Any, **options: Any) -> int:
        # Another worker claims between our look and our claim, the first time.
        if self is database.jobs and next(looks) == 1:
            return 0
        return await count_documents(self, *args, **options)

    monkeypatch.setattr(Collection, "count_documents", late)
    started: list[Any] = []

    async def noted(run: JobRun) -> Outcome:
        started.append(run.job.priority)
        while True:
            run.check()
            await asyncio.sleep(0.01)

    busy, _ = await queue.add(JobSpec("x", "noted", symbol="busy", first_run_ms=2**52))
    until_ms = database.server_clock.now_ms() + 60_000
    await database.jobs.update_one(
        {"_id": busy.id},
        {
            "$set": {
                "state": "running",
                "lock": {"locked_by": "bob", "lock_until": until_ms, "lease_token": "t"},
                "next_run_at": until_ms,
            }
        },
    )
    for priority in (30, 10, 20):
        await queue.add(JobSpec("x", "noted", symbol=str(ObjectId()), priority=priority))
    async with working(database, noted=noted):
        await until(lambda: started, "a job has begun")
        await asyncio.sleep(0.05)
        assert started == [10]
