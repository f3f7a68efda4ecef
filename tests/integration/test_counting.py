"""One process counts for all, from an index alone, and no oftener than it is worth."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock
from collector.jobs.counting import EVERY_MS, OVERDUE_MS, REST_PER_COST, JobCount, JobCounting
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.lag import Reached, reached
from collector.jobs.queue import JobQueue
from collector.jobs.turn import HELD_FOR_MS, DutyTurn
from migrations import runner
from tests.support.mongo_profile import profiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database

TURN = {"_id": "turn:count jobs"}


@pytest.fixture
async def queue(database: Database) -> JobQueue:
    """Of x five jobs, of which one is paused and one deleted; of y one."""
    queue = JobQueue(database)
    jobs = [(await queue.add(JobSpec("x", "count", symbol=str(n))))[0] for n in range(5)]
    await queue.pause(jobs[0].id)
    await queue.delete(jobs[1].id)
    await queue.add(JobSpec("y", "count"))
    return queue


COUNTED = {("x", "active", "queued"): 3, ("x", "paused", "idle"): 1, ("y", "active", "queued"): 1}


def told(counts: Sequence[JobCount]) -> dict[tuple[str, str, str], int]:
    return {(each.exchange_id, each.status, each.state): each.count for each in counts}


async def due_in_ms(database: Database) -> int:
    document = await database.system.find_one(TURN)
    assert document is not None
    due_at: int = document["due_at"]
    return due_at - database.server_clock.now_ms()


async def make_due(database: Database, ago_ms: int = 1_000) -> None:
    at = database.server_clock.now_ms() - ago_ms
    await database.system.update_one(TURN, {"$set": {"due_at": at}})


async def test_live_jobs_are_counted_by_status_and_state(
    database: Database, queue: JobQueue
) -> None:
    assert told(await JobCounting(database).count()) == COUNTED


async def test_a_count_reads_no_job(empty_database: Database) -> None:
    await runner.up(empty_database)
    queue = JobQueue(empty_database)
    for number in range(30):
        await queue.add(JobSpec("xy"[number % 2], "count", symbol=str(number)))
    async with profiled(empty_database) as seen:
        await JobCounting(empty_database).count()
    (count,) = seen
    assert count["docsExamined"] == 0
    assert 30 <= count["keysExamined"] <= 35


async def test_of_many_who_come_one_counts_and_the_others_read_it(
    database: Database, queue: JobQueue
) -> None:
    answers = await asyncio.gather(*(JobCounting(database).take_turn() for _ in range(20)))
    (counts,) = [each for each in answers if each is not None]
    assert told(counts) == COUNTED
    await queue.add(JobSpec("y", "count", symbol="later"))
    assert told(await JobCounting(database).last()) == COUNTED, "it was counted a moment ago"
    await make_due(database)
    assert told(await JobCounting(database).last()) == COUNTED, "the workers come first"
    assert (
        Counter(told(await JobCounting(database).take_turn() or []))["y", "active", "queued"] == 2
    )


async def test_whoever_asks_during_the_first_count_is_told_all_the_same(
    database: Database, queue: JobQueue
) -> None:
    assert await DutyTurn(database, "count jobs").take() is not None
    assert told(await JobCounting(database).last()) == COUNTED


async def test_without_workers_whoever_asks_counts(database: Database, queue: JobQueue) -> None:
    assert told(await JobCounting(database).last()) == COUNTED, "nobody ever counted"
    await queue.add(JobSpec("z", "count"))
    await make_due(database, ago_ms=OVERDUE_MS + 1_000)
    assert ("z", "active", "queued") in told(await JobCounting(database).last())


class SlowClock(ManualClock):
    """Two seconds pass between any two looks at it."""

    def monotonic(self) -> float:
        self.advance(2)
        return super().monotonic()


async def test_a_dear_count_is_not_repeated_soon(database: Database, queue: JobQueue) -> None:
    await JobCounting(database).take_turn()
    assert await due_in_ms(database) <= EVERY_MS + 1_000
    await make_due(database)
    await JobCounting(database, clock=SlowClock()).take_turn()
    assert await due_in_ms(database) > REST_PER_COST * 2_000 - 10_000


async def test_a_turn_whose_holder_died_runs_out_and_cannot_be_ended_any_more(
    database: Database,
) -> None:
    turn = DutyTurn(database, "duty")
    dead = await turn.take()
    assert dead is not None
    assert await turn.take() is None
    document = await database.system.find_one({"_id": "turn:duty"})
    assert document is not None
    held_ms = document["due_at"] - database.server_clock.now_ms()
    assert 0 < held_ms <= HELD_FOR_MS + 1_000
    await database.system.update_one({"_id": "turn:duty"}, {"$set": {"due_at": 1}})
    heir = await turn.take()
    assert heir is not None
    await turn.end(dead, {"said": "late"}, rest_ms=0)
    assert await turn.last_result() is None
    await turn.end(heir, {"said": "$in time"}, rest_ms=0)
    assert await turn.last_result() == {"said": "$in time"}


async def test_the_series_furthest_behind_is_found_by_a_key_each(
    empty_database: Database,
) -> None:
    await runner.up(empty_database)
    queue = JobQueue(empty_database)
    for number in range(60):
        exchange_id, timeframe = ("x", "y")[number % 2], ("1m", "1h", "1d")[number % 3]
        cursor = Cursor(since_ms=1_000 + number)
        spec = JobSpec(exchange_id, "ohlcv_incremental", f"C{number}/D", timeframe, cursor=cursor)
        job, _ = await queue.add(spec)
        if number < 6:
            await queue.pause(job.id)
    await queue.add(JobSpec("z", "ohlcv_backfill", "A/B", "1m", cursor=Cursor(until_ms=1)))
    async with profiled(empty_database) as seen:
        found = await reached(empty_database)
    assert sorted(found, key=lambda each: each.since_ms) == [
        Reached(("x", "y")[number % 2], ("1m", "1h", "1d")[number % 3], 1_000 + number)
        for number in range(6, 12)
    ]
    assert sum(each["docsExamined"] for each in seen) == 0
    assert sum(each["keysExamined"] for each in seen) <= 12
