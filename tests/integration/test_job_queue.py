"""What operators do to jobs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.errors import JobConflict, NotFound
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from collector.mongo.client import Database

SPEC = JobSpec("binance", "ohlcv_incremental", symbol="BTC/USDT", timeframe="1m")


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


async def test_a_new_job_is_due_now_and_has_the_seeds_fields(queue: JobQueue) -> None:
    job, made = await queue.add(SPEC)
    assert made
    assert (job.status, job.state) == (Status.ACTIVE, State.QUEUED)
    document = job.document
    assert document["priority"] == 50
    assert document["schedule"]["mode"] == "bar_close"
    assert document["cursor"] == Cursor().to_document()
    assert document["stats"]["runs"] == 0
    assert document["lock"] == {"locked_by": None, "lock_until": None, "lease_token": None}
    assert document["created_at"] == document["updated_at"]


async def test_a_job_for_later_is_idle(database: Database, queue: JobQueue) -> None:
    later = database.server_clock.now_ms() + 60_000
    job, _ = await queue.add(JobSpec("binance", "count", first_run_ms=later))
    assert (job.state, job.next_run_at) == (State.IDLE, later)


async def test_two_hundred_posts_of_one_job_make_one(database: Database, queue: JobQueue) -> None:
    answers = await asyncio.gather(*(queue.add(SPEC) for _ in range(200)))
    assert sum(made for _, made in answers) == 1
    assert len({job.id for job, _ in answers}) == 1
    assert await database.jobs.count_documents({}) == 1


async def test_a_twin_is_the_paused_one_and_deleting_frees_the_key(queue: JobQueue) -> None:
    job, _ = await queue.add(SPEC)
    await queue.pause(job.id)
    twin, made = await queue.add(SPEC)
    assert (twin.id, twin.status, made) == (job.id, Status.PAUSED, False)
    await queue.delete(job.id)
    fresh, made = await queue.add(SPEC)
    assert made
    assert fresh.id != job.id


async def test_gap_jobs_are_unique_by_their_interval(queue: JobQueue) -> None:
    def gap(since: int) -> JobSpec:
        return JobSpec("x", "gap_backfill", "A/B", "1m", cursor=Cursor(since, since + 60_000))

    first, _ = await queue.add(gap(0))
    same, _ = await queue.add(gap(0))
    other, _ = await queue.add(gap(60_000))
    assert first.id == same.id != other.id


async def test_operators_words_may_contain_anything(queue: JobQueue) -> None:
    job, _ = await queue.add(
        JobSpec("x", "count", symbol="$where", params={"$set": 1, "a": "$priority"})
    )
    assert (job.symbol, dict(job.params)) == ("$where", {"$set": 1, "a": "$priority"})


async def test_pause_resume_and_run(queue: JobQueue) -> None:
    job, _ = await queue.add(SPEC)
    assert (await queue.pause(job.id)).status is Status.PAUSED
    assert (await queue.pause(job.id)).status is Status.PAUSED
    with pytest.raises(JobConflict, match="is paused and idle: cannot run it"):
        await queue.run(job.id)
    resumed = await queue.resume(job.id)
    assert (resumed.status, resumed.state) == (Status.ACTIVE, State.QUEUED)
    assert (await queue.resume(job.id)).status is Status.ACTIVE


async def test_run_makes_a_waiting_job_due(database: Database, queue: JobQueue) -> None:
    later = database.server_clock.now_ms() + 3_600_000
    job, _ = await queue.add(JobSpec("x", "count", first_run_ms=later))
    started = await queue.run(job.id)
    assert started.state is State.QUEUED
    assert started.next_run_at < later


async def test_nobody_is_refused_because_a_worker_is_quick(
    database: Database, queue: JobQueue
) -> None:
    job, _ = await queue.add(SPEC)

    async def lease_and_settle() -> None:
        while True:
            for state in ("running", "idle"):
                await database.jobs.update_one({"_id": job.id}, {"$set": {"state": state}})

    worker = asyncio.create_task(lease_and_settle())
    try:
        for _ in range(100):
            assert (await queue.run(job.id)).status is Status.ACTIVE
            assert (await queue.pause(job.id)).status is Status.PAUSED
            assert (await queue.resume(job.id)).status is Status.ACTIVE
    finally:
        worker.cancel()


async def test_a_deleted_job_cannot_be_moved(queue: JobQueue) -> None:
    job, _ = await queue.add(SPEC)
    await queue.delete(job.id)
    for act in (queue.pause, queue.resume, queue.run, queue.delete):
        with pytest.raises(JobConflict):
            await act(job.id)


@pytest.mark.parametrize("job_id", ["", "nonsense", "$ne", "../etc", "6af" * 8])
async def test_an_id_that_is_none_is_not_found(queue: JobQueue, job_id: str) -> None:
    with pytest.raises(NotFound):
        await queue.get(job_id)


async def test_listing_pages_filters_and_hides_the_deleted(queue: JobQueue) -> None:
    jobs = [(await queue.add(JobSpec("x", "count", symbol=str(n))))[0] for n in range(5)]
    await queue.add(JobSpec("y", "count"))
    await queue.delete(jobs[0].id)
    first = await queue.find({"exchange_id": "x"}, limit=3)
    rest = await queue.find({"exchange_id": "x"}, limit=3, after=first[-1].id)
    assert [job.id for job in first + rest] == [job.id for job in jobs[1:]]
    assert [j.id for j in await queue.find({"status": "deleted"})] == [jobs[0].id]
