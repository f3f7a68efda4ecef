"""A job that is wanted now runs after that moment, whatever it is doing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.backoff import Backoff
from collector.errors import RateLimited
from collector.jobs import settlement
from collector.jobs.job import JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.run_now import run_soon
from collector.jobs.schedule import Every
from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from collector.jobs.job import Job
    from collector.jobs.settlement import Settlement
    from collector.mongo.client import Database

HOURLY = Every(3_600_000)
BACKOFF = Backoff(base_seconds=600, max_seconds=600)


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
def ann(database: Database) -> Leasing:
    return Leasing(database, "ann")


async def some_job(queue: JobQueue) -> Job:
    return (await queue.add(JobSpec("x", "count", schedule=HOURLY)))[0]


def ends(job: Job, now_ms: int) -> dict[str, Settlement]:
    return {
        "again": settlement.again(job, now_ms, 0.5),
        "later": settlement.later(3_600_000, job.cursor, {}),
        "retry": settlement.retry(1, "boom", BACKOFF, 0.5),
        "done": settlement.done(),
        "fail": settlement.fail(job, "no such market"),
        "give_back": settlement.give_back(),
    }


@pytest.mark.parametrize("end", ["again", "later", "retry", "done", "fail", "give_back"])
async def test_a_run_that_is_requested_during_a_run_follows_it(
    database: Database, queue: JobQueue, ann: Leasing, end: str
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    assert (await queue.run(job.id)).state is State.RUNNING
    await ann.settle(lease, ends(lease.job, await database.now_ms())[end])
    ended = await queue.get(job.id)
    assert (ended.state, ended.status) == (State.QUEUED, Status.ACTIVE)
    (again,) = await ann.claim("x")
    await ann.settle(again, settlement.again(again.job, await database.now_ms(), 0.5))
    # Once, and not for ever.
    assert await ann.claim("x") == []


async def test_a_job_that_found_no_token_waits_for_it_all_the_same(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await queue.run(job.id)
    reset_at = await database.now_ms() + 60_000
    denied = RateLimited("x", 60_000, "window", retry_at_ms=reset_at)
    await ann.settle(lease, settlement.wait_for_token(denied, 0.0))
    waiting = await queue.get(job.id)
    assert (waiting.state, waiting.next_run_at) == (State.WAITING, reset_at)


async def test_an_operators_pause_outweighs_a_run_that_was_requested_before(
    queue: JobQueue, ann: Leasing
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await queue.run(job.id)
    await queue.pause(job.id)
    await ann.settle(lease, settlement.put_down())
    paused = await queue.get(job.id)
    assert (paused.state, paused.status) == (State.IDLE, Status.PAUSED)


async def test_no_request_is_lost_in_a_storm_of_them(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    """After every request that was answered, a run begins."""
    job = await some_job(queue)
    begun = requested_at_fence = 0

    async def work() -> None:
        nonlocal begun
        while True:
            for lease in await ann.claim("x"):
                begun = lease.fence
                await asyncio.sleep(0.001)
                now_ms = await database.now_ms()
                await ann.settle(lease, settlement.again(lease.job, now_ms, 0.5))
            await asyncio.sleep(0)

    working = asyncio.create_task(work())
    try:
        for _ in range(60):
            requested_at_fence = (await queue.run(job.id)).fence
            async with asyncio.timeout(60):
                while begun <= requested_at_fence:
                    await asyncio.sleep(0.001)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_program_disturbs_no_job_that_waits_for_tokens_or_backs_off(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await ann.settle(lease, settlement.retry(1, "boom", BACKOFF, 0.5))
    before = await queue.get(job.id)
    await run_soon(database, {"_id": job.id})
    assert (await queue.get(job.id)).document == before.document
    await queue.run(job.id)
    assert (await queue.get(job.id)).state is State.QUEUED


async def test_a_program_may_ask_for_a_run_that_is_under_way(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await run_soon(database, {"_id": job.id})
    await ann.settle(lease, settlement.again(lease.job, await database.now_ms(), 0.5))
    assert (await queue.get(job.id)).state is State.QUEUED
