"""Leases on a real mongod: who may write, and who may not any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.errors import JobStopped, LeaseLost
from collector.jobs import settlement
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.lease_statements import LEASE_INDEX, due_filter
from collector.jobs.leasing import Leasing
from collector.jobs.overdue import first_due
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.jobs.sweep import sweep

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.jobs.job import Job
    from collector.mongo.client import Database

BACKOFF = Backoff(base_seconds=10, max_seconds=60, jitter=0)


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
def ann(database: Database) -> Leasing:
    return Leasing(database, "ann")


@pytest.fixture
def bob(database: Database) -> Leasing:
    return Leasing(database, "bob")


async def expire(database: Database, job_id: ObjectId) -> None:
    """Lets the lease's time pass."""
    await database.jobs.update_one(
        {"_id": job_id}, {"$set": {"lock.lock_until": 1, "next_run_at": 1}}
    )


async def some_job(queue: JobQueue, name: str = "a", **fields: Any) -> Job:
    return (await queue.add(JobSpec("x", "count", symbol=name, **fields)))[0]


async def test_a_job_is_leased_once_and_says_by_whom(queue: JobQueue, ann: Leasing) -> None:
    job = await some_job(queue)
    leases = await asyncio.gather(*(ann.claim("x") for _ in range(20)))
    (lease,) = [lease for batch in leases for lease in batch]
    held = await queue.get(job.id)
    assert (held.state, held.fence, held.attempt) == (State.RUNNING, 1, 1)
    assert held.document["lock"]["locked_by"] == "ann"
    assert held.document["lock"]["lease_token"] == lease.lease_token
    assert held.next_run_at == held.document["lock"]["lock_until"]


async def test_urgent_jobs_go_first_then_those_that_wait_longest(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    now = database.server_clock.now_ms()
    for name, priority, due in [("c", 50, -10), ("b", 50, -20), ("a", 20, -1), ("z", 10, 60_000)]:
        await some_job(queue, name, priority=priority, first_run_ms=now + due)
    assert [lease.job.symbol for _ in range(4) for lease in await ann.claim("x")] == ["a", "b", "c"]
    assert await ann.claim("y") == []


async def test_a_batch_is_taken_in_order_and_never_twice(
    queue: JobQueue, ann: Leasing, bob: Leasing
) -> None:
    for number in range(30):
        await some_job(queue, f"{number:02}", priority=number)
    batches = await asyncio.gather(*(who.claim("x", 8) for who in (ann, bob) for _ in range(4)))
    names = [lease.job.symbol for batch in batches for lease in batch]
    assert len(names) == len(set(names))
    rest = await ann.claim("x", 30)
    assert sorted(names + [lease.job.symbol for lease in rest]) == [f"{n:02}" for n in range(30)]
    assert [lease.job.symbol for lease in rest] == sorted(str(lease.job.symbol) for lease in rest)


async def test_a_lease_examines_few_keys_and_sorts_nothing(
    database: Database, queue: JobQueue
) -> None:
    await some_job(queue)
    template = await database.jobs.find_one({})
    assert template is not None
    template.pop("_id")
    now = database.server_clock.now_ms()
    await database.raw["jobs"].insert_many(
        {
            **template,
            "unique_key": f"{exchange}{number}",
            "exchange_id": exchange,
            "priority": (10, 20, 50, 60, 70)[number % 5],
            "next_run_at": now + (1 if number % 2 else -1) * (number + 1) * 1000,
        }
        for exchange in ("x", "y")
        for number in range(2000)
    )
    plan = await database.raw.command(
        "explain",
        {
            "findAndModify": "jobs",
            "query": due_filter("x"),
            "sort": {"priority": 1, "next_run_at": 1},
            "hint": LEASE_INDEX,
            "update": {"$set": {"state": "running"}},
        },
        verbosity="executionStats",
    )
    assert plan["executionStats"]["totalKeysExamined"] <= 10
    assert "SORT" not in str(plan["queryPlanner"]["winningPlan"])


async def test_renewal_extends_all_and_tells_which_are_lost(
    database: Database, queue: JobQueue, ann: Leasing, bob: Leasing
) -> None:
    jobs = [await some_job(queue, name) for name in "abc"]
    leases = await ann.claim("x", 3)
    await expire(database, jobs[1].id)
    (stolen,) = await bob.claim("x")
    renewed, lost = await ann.renew(leases)
    assert [lease.job_id for lease in lost] == [stolen.job_id] == [jobs[1].id]
    assert [lease.job_id for lease in renewed] == [jobs[0].id, jobs[2].id]
    assert renewed[0].trusted_until >= leases[0].trusted_until
    held = await queue.get(jobs[0].id)
    assert held.next_run_at == held.document["lock"]["lock_until"]


async def test_a_stale_fence_cannot_write(
    database: Database, queue: JobQueue, ann: Leasing, bob: Leasing
) -> None:
    job = await some_job(queue)
    (old,) = await ann.claim("x")
    await expire(database, job.id)
    (new,) = await bob.claim("x")
    assert (new.fence, new.kills) == (old.fence + 1, 1)
    with pytest.raises(LeaseLost):
        await ann.commit(old, Cursor(page=9))
    with pytest.raises(LeaseLost):
        await ann.settle(old, settlement.done())
    assert (await ann.renew([old]))[1] == [old]
    await bob.commit(new, Cursor(page=1))
    await bob.settle(new, settlement.done())
    with pytest.raises(LeaseLost):
        await ann.settle(old, settlement.done())
    assert (await queue.get(job.id)).cursor.page == 1


async def test_settling_twice_is_once(queue: JobQueue, ann: Leasing) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await ann.settle(lease, settlement.done(cursor=Cursor(done=True)))
    await ann.settle(lease, settlement.done(cursor=Cursor(done=True)))
    finished = await queue.get(job.id)
    assert (finished.state, finished.status) == (State.SUCCESS, Status.PAUSED)
    assert finished.document["stats"]["runs"] == 1
    assert finished.cursor.done


async def test_pausing_a_running_job_stops_it_after_the_page_in_hand(
    queue: JobQueue, ann: Leasing
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await queue.pause(job.id)
    with pytest.raises(JobStopped):
        await ann.commit(lease, Cursor(page=1))
    await ann.settle(lease, settlement.put_down())
    stopped = await queue.get(job.id)
    assert (stopped.state, stopped.status, stopped.cursor.page) == (State.IDLE, Status.PAUSED, 1)
    assert await ann.claim("x") == []


async def test_an_operators_word_outlives_the_run(queue: JobQueue, ann: Leasing) -> None:
    jobs = [await some_job(queue, name) for name in "abc"]
    leases = await ann.claim("x", 3)
    for job in jobs[:2]:
        await queue.pause(job.id)
    await queue.delete(jobs[2].id)
    await ann.settle(leases[0], settlement.give_back())
    await ann.settle(leases[1], settlement.done())
    await ann.settle(leases[2], settlement.done())
    states = [((j := await queue.get(job.id)).state, j.status) for job in jobs]
    assert states == [
        (State.IDLE, Status.PAUSED),
        (State.SUCCESS, Status.PAUSED),
        (State.SUCCESS, Status.DELETED),
    ]


async def test_waiting_and_draining_give_the_attempt_back(queue: JobQueue, ann: Leasing) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await ann.settle(lease, settlement.give_back())
    given_back = await queue.get(job.id)
    assert (given_back.state, given_back.attempt) == (State.QUEUED, 0)


async def test_failures_back_off_and_success_forgives(queue: JobQueue, ann: Leasing) -> None:
    job = await some_job(queue)
    for expected in (10_000, 20_000, 40_000, 60_000):
        (lease,) = await ann.claim("x")
        await ann.settle(lease, settlement.retry(lease.job.attempt, "boom", BACKOFF, 0.5))
        failed = await queue.get(job.id)
        started = failed.document["stats"]["last_run_at"]
        assert expected <= failed.next_run_at - started < expected + 5000
        assert failed.document["waiting_for"] == "retry"
        await queue._jobs.update_one({"_id": job.id}, {"$set": {"next_run_at": 1}})
    (lease,) = await ann.claim("x")
    await ann.settle(lease, settlement.again(lease.job, 0, 0.5))
    assert (await queue.get(job.id)).attempt == 0
    assert (await queue.get(job.id)).document["stats"]["fail"] == 4


async def test_a_vanished_job_frees_its_key(queue: JobQueue, ann: Leasing) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await ann.settle(lease, settlement.done(vanish=True))
    assert (await some_job(queue)).id != job.id


async def test_claims_whose_answer_was_lost_are_found(
    queue: JobQueue, ann: Leasing, bob: Leasing
) -> None:
    for name in "abc":
        await some_job(queue, name)
    known, lost = await ann.claim("x", 2)
    await bob.claim("x")
    assert [lease.job_id for lease in await ann.forgotten([known.job_id])] == [lost.job_id]


async def test_the_sweeper_puts_down_what_a_dead_worker_left_paused(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    job = await some_job(queue)
    (lease,) = await ann.claim("x")
    await queue.pause(job.id)
    assert await sweep(database) == 0
    await expire(database, job.id)
    assert await sweep(database) == 1
    assert (await queue.get(job.id)).state is State.IDLE
    with pytest.raises(LeaseLost):
        await ann.commit(lease, Cursor())


async def test_the_next_due_job_is_known(database: Database, queue: JobQueue, ann: Leasing) -> None:
    now = database.server_clock.now_ms()
    await some_job(queue, "later", first_run_ms=now + 90_000)
    await some_job(queue, "sooner", first_run_ms=now + 60_000, priority=1000)
    await some_job(queue, "now", first_run_ms=now)
    assert await first_due(database) == {"x": now}
    (lease,) = await ann.claim("x")
    await ann.settle(lease, settlement.done())
    assert await first_due(database) == {"x": now + 60_000}


async def test_live_leases_are_in_the_order_in_which_they_were_claimed(
    database: Database, queue: JobQueue, ann: Leasing
) -> None:
    jobs = [await some_job(queue, name, priority=90 - n) for n, name in enumerate("abcd")]
    for _ in range(2):
        await ann.claim("x")
    await ann.claim("x", 2)
    await expire(database, jobs[3].id)
    assert await ann.live_leases("x", 9) == [jobs[2].id, jobs[1].id, jobs[0].id]
    assert await ann.live_leases("x", 1) == [jobs[2].id]
