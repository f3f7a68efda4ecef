"""Priority decides which job is claimed, which run keeps its slot and who gets the next token."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseUnavailable, RateLimited
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.lease import KILLS_BEFORE_ALONE
from collector.jobs.leasing import Leasing
from collector.jobs.overdue import first_due
from collector.jobs.queue import JobQueue
from collector.jobs.schedule import Every
from collector.jobs.states import State
from tests.support.mongo_profile import profiled
from tests.support.until import until, until_job
from workers.claiming import Claiming
from workers.handlers.registry import Again, Done, HandlerRegistry, Outcome
from workers.runtime import Worker, WorkerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from workers.handlers.registry import Handler
    from workers.job_run import JobRun


@pytest.fixture
async def queue(database: Database) -> JobQueue:
    await ConnectorRegistry(database).ensure("x", Limits(1_000, 1_000))
    return JobQueue(database)


@asynccontextmanager
async def working(
    database: Database, name: str = "ann", *, concurrency: int = 100, **handlers: Handler
) -> AsyncIterator[Worker]:
    """A worker that drains when the block ends."""
    async with Limiter(database) as limiter:
        config = WorkerConfig(name, concurrency, poll_seconds=0.1)
        worker = Worker(database, limiter, HandlerRegistry(handlers), config)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
            assert not running.done(), "the worker has ended by itself"
        finally:
            worker.drain()
            await asyncio.wait_for(running, 120)


def backfill(symbol: str, **fields: Any) -> JobSpec:
    return JobSpec("x", "ohlcv_backfill", symbol, "1m", cursor=Cursor(until_ms=2**45), **fields)


async def endless(run: JobRun) -> Outcome:
    """A history that goes on until it is stopped, page by page."""
    while True:
        run.check()
        await asyncio.sleep(0.005)


async def short(run: JobRun) -> Outcome:
    return Done()


# -- claims -----------------------------------------------------------------------------------


async def test_a_job_that_is_never_the_most_urgent_is_claimed_all_the_same(
    database: Database, queue: JobQueue
) -> None:
    """Urgent work that never ends: eight jobs are claimed, and eight more are due at once."""
    now = await database.now_ms()
    patient, _ = await queue.add(JobSpec("x", "a", priority=90, first_run_ms=now - 60_000))
    leasing = Leasing(database, "ann")
    claimed: list[Any] = []
    for number in range(16):
        await queue.add(JobSpec("x", "a", symbol=str(number), priority=10))
    for number in range(8):
        claimed += [lease.job_id for lease in await leasing.claim("x")]
        await queue.add(JobSpec("x", "a", symbol=f"more {number}", priority=10))
    assert patient.id in claimed


async def test_a_batch_of_claims_has_room_for_the_one_that_waits_longest(
    database: Database, queue: JobQueue
) -> None:
    now = await database.now_ms()
    patient, _ = await queue.add(JobSpec("x", "a", priority=90, first_run_ms=now - 60_000))
    for number in range(16):
        await queue.add(JobSpec("x", "a", symbol=str(number), priority=10))
    leases = await Leasing(database, "ann").claim("x", 16)
    assert [lease.job_id for lease in leases].index(patient.id) == 7


async def test_one_query_shows_what_is_due_on_many_exchanges(
    database: Database, queue: JobQueue
) -> None:
    now = await database.now_ms()
    for exchange in range(40):
        for number in range(5):
            await queue.add(
                JobSpec(f"e{exchange}", "a", str(number), first_run_ms=now + exchange + number)
            )
    paused, _ = await queue.add(JobSpec("e0", "a", "paused", first_run_ms=now - 9_000))
    await queue.pause(paused.id)
    async with profiled(database) as statements:
        due = await first_due(database)
    assert {exchange: ms - now for exchange, ms in due.items()} == {f"e{n}": n for n in range(40)}
    (statement,) = statements
    assert statement["keysExamined"] <= 2 * 40 + 1
    assert statement["docsExamined"] == 0


# -- slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ceiling", [None, 3])
async def test_a_more_urgent_job_gets_the_slot_of_a_history_which_goes_on_afterwards(
    database: Database, queue: JobQueue, ceiling: int | None
) -> None:
    if ceiling:
        await ConnectorRegistry(database).change_limits("x", {"max_concurrent_jobs": ceiling})
    histories = [(await queue.add(backfill(str(n))))[0] for n in range(3)]
    concurrency = 100 if ceiling else 3
    async with working(
        database, concurrency=concurrency, ohlcv_backfill=endless, ohlcv_incremental=short
    ):
        for history in histories:
            await until_job(queue, history, lambda job: job.state is State.RUNNING)
        live, _ = await queue.add(JobSpec("x", "ohlcv_incremental", "A/B", "1m"))
        await until_job(queue, live, lambda job: job.state is State.SUCCESS)
        for history in histories:
            await until_job(queue, history, lambda job: job.state is State.RUNNING)
    assert [(await queue.get(job.id)).attempt for job in histories] == [0, 0, 0]


async def test_only_as_many_histories_are_stopped_as_more_urgent_jobs_are_due(
    database: Database, queue: JobQueue
) -> None:
    histories = [(await queue.add(backfill(str(n), priority=70 + n)))[0] for n in range(4)]
    leave = asyncio.Event()

    async def held(run: JobRun) -> Outcome:
        await leave.wait()
        return Done()

    async with working(database, concurrency=4, ohlcv_backfill=endless, held=held):
        for history in histories:
            await until_job(queue, history, lambda job: job.state is State.RUNNING)
        urgent = [(await queue.add(JobSpec("x", "held", str(n))))[0] for n in range(2)]
        for job in urgent:
            await until_job(queue, job, lambda job: job.state is State.RUNNING)
        fences = [(await queue.get(job.id)).fence for job in histories]
        states = [(await queue.get(job.id)).state for job in histories]
        leave.set()
        for job in urgent:
            await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    assert fences == [1, 1, 1, 1]
    assert states == [State.RUNNING, State.RUNNING, State.QUEUED, State.QUEUED]


async def test_neither_a_stream_nor_an_equal_gives_its_slot_away(
    database: Database, queue: JobQueue
) -> None:
    stream, _ = await queue.add(JobSpec("x", "price_stream", priority=90))
    history, _ = await queue.add(backfill("A/B"))
    async with working(
        database, concurrency=2, price_stream=endless, ohlcv_backfill=endless, short=short
    ):
        for job in (stream, history):
            await until_job(queue, job, lambda job: job.state is State.RUNNING)
        other, _ = await queue.add(backfill("C/D"))
        third, _ = await queue.add(JobSpec("x", "short", priority=71))
        await asyncio.sleep(0.5)
        states = [(await queue.get(job.id)).state for job in (stream, history, other, third)]
    assert states == [State.RUNNING, State.RUNNING, State.QUEUED, State.QUEUED]


async def test_of_workers_that_claim_together_each_gives_back_what_is_behind_the_ceiling(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise all see too many, and all step back."""
    await ConnectorRegistry(database).change_limits("x", {"max_concurrent_jobs": 4})
    share, look = Claiming._share, Leasing.live_leases
    one_by_one, met = asyncio.Lock(), asyncio.Barrier(2)
    shares, looks = count(), count()

    async def share_together(self: Claiming, *args: Any) -> Any:
        meets = next(shares) < 2
        if meets:
            await met.wait()
        async with one_by_one:
            answer = await share(self, *args)
        if meets:
            await met.wait()
        return answer

    async def look_together(self: Leasing, *args: Any) -> Any:
        answer = await look(self, *args)
        if next(looks) in (2, 3):  # Both have looked for room before, and claimed meanwhile.
            await met.wait()
        return answer

    monkeypatch.setattr(Claiming, "_share", share_together)
    monkeypatch.setattr(Leasing, "live_leases", look_together)
    started: list[str] = []

    async def noted(run: JobRun) -> Outcome:
        started.append(str(run.job.symbol))
        return await endless(run)

    jobs = [(await queue.add(JobSpec("x", "noted", str(n))))[0] for n in range(8)]
    async with (
        working(database, "ann", concurrency=4, noted=noted),
        working(database, "bob", concurrency=4, noted=noted),
    ):
        await until(lambda: len(started) == 4, "the ceiling is reached")
        fences = [(await queue.get(job.id)).fence for job in jobs]
    assert fences == [1] * 8


async def test_upkeep_runs_while_the_budget_is_spent(database: Database, queue: JobQueue) -> None:
    await ConnectorRegistry(database).ensure("y", Limits(1, 3_600_000))
    begun = asyncio.Event()

    async def asking(run: JobRun) -> Outcome:
        begun.set()
        await run.token()
        return Again()

    async def upkeep(run: JobRun) -> Outcome:
        return Again()

    for number in range(3):
        await queue.add(JobSpec("y", "ohlcv_incremental", str(number), "1m", schedule=Every(50)))
    async with working(
        database, ohlcv_incremental=asking, gap_scan=upkeep, compact=upkeep
    ) as worker:
        await begun.wait()
        await until(lambda: worker._limiter.exhausted_until("y") > 0, "the budget is spent")
        scan, _ = await queue.add(JobSpec("y", "gap_scan"))
        merge, _ = await queue.add(JobSpec("y", "compact"))
        for job in (scan, merge):
            await until_job(queue, job, lambda job: job.document["stats"]["success"] == 1)


# -- tokens -----------------------------------------------------------------------------------


async def test_the_next_token_goes_to_the_more_urgent_job(
    database: Database, queue: JobQueue
) -> None:
    await ConnectorRegistry(database).ensure("y", Limits(4, 500))
    order: list[int] = []

    async def ask(limiter: Limiter, urgency: int) -> None:
        await limiter.acquire("y", urgency=urgency, patience=60.0)
        order.append(urgency)

    async with Limiter(database) as limiter:
        await asyncio.gather(*(ask(limiter, 0) for _ in range(4)))
        order.clear()
        histories = [asyncio.create_task(ask(limiter, 70)) for _ in range(30)]
        await asyncio.sleep(0)
        lives = [asyncio.create_task(ask(limiter, 50)) for _ in range(7)]
        await asyncio.gather(*lives)
        # The live ones had all turns but those of whoever waits longest.
        assert order.count(70) <= 2 + 3
        await asyncio.gather(*histories)


async def test_a_request_that_is_never_the_most_urgent_gets_its_token(
    database: Database, queue: JobQueue
) -> None:
    await ConnectorRegistry(database).ensure("y", Limits(4, 100))
    async with Limiter(database) as limiter:

        async def live() -> None:
            while True:
                await limiter.acquire("y", urgency=50, patience=60.0)

        urgent = [asyncio.create_task(live()) for _ in range(12)]
        try:
            async with asyncio.timeout(60):
                await limiter.acquire("y", urgency=70, patience=60.0)
        except RateLimited:
            pytest.fail("the less urgent request was denied")
        finally:
            for task in urgent:
                task.cancel()
            await asyncio.gather(*urgent, return_exceptions=True)


# -- a job's failure is that job's ------------------------------------------------------------


async def test_a_statement_that_fails_for_a_suspect_ends_no_worker(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_alone, failed = Leasing.mark_alone, asyncio.Event()

    async def fail_once(self: Leasing, lease: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise DatabaseUnavailable("no primary")
        await mark_alone(self, lease)

    monkeypatch.setattr(Leasing, "mark_alone", fail_once)
    suspect, _ = await queue.add(JobSpec("x", "short", "suspect"))
    kills = {"kills": KILLS_BEFORE_ALONE}
    await database.jobs.update_one({"_id": suspect.id}, {"$set": kills})
    async with working(database, short=short):
        await failed.wait()
        other, _ = await queue.add(JobSpec("x", "short", "other"))
        await until_job(queue, other, lambda job: job.state is State.SUCCESS)
        await queue.run(suspect.id)
        await until_job(queue, suspect, lambda job: job.state is State.SUCCESS)


async def test_a_defect_beside_a_handler_is_that_jobs(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.cadences import Cadences

    async def broken(self: Cadences, job: Job) -> Job:
        if job.symbol == "broken":
            raise KeyError("cadence")
        return job

    async def again(run: JobRun) -> Outcome:
        return Again()

    monkeypatch.setattr(Cadences, "applied", broken)
    bad, _ = await queue.add(JobSpec("x", "again", "broken", schedule=Every(3_600_000)))
    good, _ = await queue.add(JobSpec("x", "again", "good", schedule=Every(3_600_000)))
    async with working(database, again=again):
        for job, fails in ((bad, 1), (good, 0)):
            ran = await until_job(queue, job, lambda job: job.document["stats"]["runs"] == 1)
            assert ran.document["stats"]["fail"] == fails
