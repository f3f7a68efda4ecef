"""One process counts for all, no oftener than it is worth, and whoever is asked reads the count."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseUnavailable
from collector.jobs.counting import OVERDUE_MS, REST_PER_COST, Counts, JobCounting
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.lag import Reached, reached
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.jobs.turn import HELD_FOR_MS, DutyTurn
from migrations import runner
from tests.support.crowd import fill_jobs
from tests.support.local_api import serving
from tests.support.mongo_profile import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

TURN = {"_id": "turn:count"}


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


def told(counts: Counts | None) -> dict[tuple[str, str, str], int]:
    assert counts is not None
    return {(each.exchange_id, each.status, each.state): each.count for each in counts.jobs}


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


async def test_states_are_counted_without_reading_a_job(empty_database: Database) -> None:
    await runner.up(empty_database)
    queue = JobQueue(empty_database)
    for number in range(30):
        await queue.add(JobSpec("xy"[number % 2], "count", symbol=str(number)))
    async with profiled(empty_database) as seen:
        await JobCounting(empty_database).count()
    assert sum(each["docsExamined"] for each in seen) == 0
    assert 30 <= sum(each["keysExamined"] for each in seen) <= 60


@pytest.mark.parametrize("path", ["status", "troubles", "census", "metrics"])
async def test_what_a_request_reads_does_not_grow_with_the_jobs(
    empty_database: Database, tmp_path: Path, path: str
) -> None:
    await runner.up(empty_database)
    await fill_jobs(empty_database, 2_000)
    await LiveWorkers(empty_database).be_seen("ann", {"host": "here", "pid": 1})
    await JobCounting(empty_database).take_turn()
    where = "/metrics" if path == "metrics" else f"/api/v1/{path}"
    async with serving(empty_database, tmp_path) as client, profiled(empty_database) as seen:
        assert (await client.get(where)).status == 200
    assert sum(each["docsExamined"] for each in seen) == 0
    assert sum(each["keysExamined"] for each in seen) <= 20
    assert len(seen) <= 2


@pytest.mark.parametrize("path", ["status", "census"])
async def test_an_answer_says_when_its_jobs_were_counted(
    database: Database, queue: JobQueue, tmp_path: Path, path: str
) -> None:
    await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
    counts = await JobCounting(database).take_turn()
    assert counts is not None
    await ConnectorRegistry(database).ensure("x", Limits(1_000, 1_000))
    await queue.add(JobSpec("x", "count", symbol="later"))
    async with serving(database, tmp_path) as client:
        body = (await client.get(f"/api/v1/{path}")).body
        metrics = (await client.get("/metrics")).body
    assert body["counted_at"] == counts.counted_ms <= body["at"]
    [listed] = [
        each for each in body.get("items") or body["connectors"] if each["exchange_id"] == "x"
    ]
    assert listed["jobs"] == {"queued": 3, "paused": 1}
    [line] = [each for each in metrics.splitlines() if each.startswith("collector_jobs_counted_at")]
    assert float(line.split()[1]) == counts.counted_ms / 1000


async def test_of_many_who_come_one_counts_and_the_others_read_it(
    database: Database, queue: JobQueue
) -> None:
    await LiveWorkers(database).be_seen("ann", {})
    answers = await asyncio.gather(*(JobCounting(database).take_turn() for _ in range(20)))
    [counts] = [each for each in answers if each is not None]
    assert told(counts) == COUNTED
    await queue.add(JobSpec("y", "count", symbol="later"))
    assert told(await JobCounting(database).last()) == COUNTED, "it was counted a moment ago"
    await make_due(database)
    assert told(await JobCounting(database).last()) == COUNTED, "the workers come first"
    assert told(await JobCounting(database).take_turn())["y", "active", "queued"] == 2


async def test_whoever_asks_during_the_first_count_is_told_all_the_same(
    database: Database, queue: JobQueue
) -> None:
    assert await DutyTurn(database, "count").take()
    assert told(await JobCounting(database).last()) == COUNTED


async def test_without_workers_whoever_asks_counts(database: Database, queue: JobQueue) -> None:
    assert told(await JobCounting(database).last()) == COUNTED, "nobody ever counted"
    await queue.add(JobSpec("z", "count"))
    await make_due(database)
    assert ("z", "active", "queued") in told(await JobCounting(database).last())


async def test_when_no_worker_counts_any_more_whoever_asks_does(
    database: Database, queue: JobQueue
) -> None:
    await LiveWorkers(database).be_seen("ann", {})
    await JobCounting(database).take_turn()
    await queue.add(JobSpec("z", "count"))
    await make_due(database, ago_ms=OVERDUE_MS + 1_000)
    assert ("z", "active", "queued") in told(await JobCounting(database).last())


class SlowClock(ManualClock):
    """Two seconds pass between any two looks at it."""

    def monotonic(self) -> float:
        self.advance(2)
        return super().monotonic()


async def test_a_dear_count_is_not_repeated_soon(database: Database, queue: JobQueue) -> None:
    await JobCounting(database, clock=SlowClock()).take_turn()
    assert await due_in_ms(database) > REST_PER_COST * 2_000 - 10_000


async def test_a_turn_whose_holder_died_runs_out_and_cannot_be_ended_any_more(
    database: Database,
) -> None:
    dead, heir = DutyTurn(database, "duty"), DutyTurn(database, "duty")
    assert await dead.take()
    assert not await heir.take()
    document = await database.system.find_one({"_id": "turn:duty"})
    assert document is not None
    held_ms = document["due_at"] - database.server_clock.now_ms()
    assert 0 < held_ms <= HELD_FOR_MS + 1_000
    await database.system.update_one({"_id": "turn:duty"}, {"$set": {"due_at": 1}})
    assert await heir.take()
    await dead.end({"said": "late"}, rest_ms=0)
    assert await heir.last_result() is None
    await heir.end({"said": "$in time"}, rest_ms=0)
    assert await heir.last_result() == {"said": "$in time"}


async def test_a_count_that_broke_off_is_made_at_the_next_look(
    database: Database, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage everybody would be told for a minute what was counted before."""
    ann, bob = JobCounting(database), JobCounting(database)

    async def breaks_off() -> Counts:
        raise DatabaseUnavailable("frozen")

    with monkeypatch.context() as patch:
        patch.setattr(ann, "count", breaks_off)
        with pytest.raises(DatabaseUnavailable):
            await ann.take_turn()
    assert await bob.take_turn() is None
    assert told(await ann.take_turn()) == COUNTED
    assert await ann.take_turn() is None, "it was ended"


async def test_requests_of_one_process_do_not_count_at_once(
    database: Database, queue: JobQueue
) -> None:
    counting = JobCounting(database)
    answers = await asyncio.gather(*(counting.take_turn() for _ in range(20)))
    assert len([each for each in answers if each is not None]) == 1


async def test_the_series_furthest_behind_is_found_by_a_key_each(
    empty_database: Database,
) -> None:
    await runner.up(empty_database)
    queue = JobQueue(empty_database)
    now_ms = await empty_database.now_ms()
    for number in range(60):
        exchange_id, timeframe = ("x", "y")[number % 2], ("1m", "1h", "1d")[number % 3]
        cursor = Cursor(since_ms=now_ms + number)
        spec = JobSpec(exchange_id, "ohlcv_incremental", f"C{number}/D", timeframe, cursor=cursor)
        job, _ = await queue.add(spec)
        if number < 6:
            await queue.pause(job.id)
    await queue.add(JobSpec("z", "ohlcv_backfill", "A/B", "1m", cursor=Cursor(until_ms=1)))
    async with profiled(empty_database) as seen:
        found = await reached(empty_database)
    assert sorted(found, key=lambda each: each.since_ms) == [
        Reached(("x", "y")[number % 2], ("1m", "1h", "1d")[number % 3], now_ms + number)
        for number in range(6, 12)
    ]
    assert sum(each["docsExamined"] for each in seen) == 0
    assert sum(each["keysExamined"] for each in seen) <= 12
