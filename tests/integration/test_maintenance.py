"""What one worker does for all: counts on connectors, sweeping, purging; and when each last ran."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from bson import ObjectId

from collector import metrics
from collector.connectors.connector import Limits
from collector.connectors.job_figures import JobFigures
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs import purge as purging
from collector.jobs.job import JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.listing import BY_EXCHANGE_STATE
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.purge import purge
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from migrations import runner
from tests.support.counting import count
from tests.support.mongo_profile import profiled
from tests.support.until import until
from workers.handlers.registry import HandlerRegistry
from workers.maintenance import Maintenance
from workers.runtime import Worker, WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
async def registry(database: Database) -> ConnectorRegistry:
    registry = ConnectorRegistry(database)
    for exchange_id in ("x", "y"):
        await registry.ensure(exchange_id, Limits(1000, 1000))
    return registry


def maintenance(database: Database, name: str = "ann") -> Maintenance:
    return Maintenance(database, name, 10)


async def next_turn(database: Database) -> None:
    await database.system.update_many({}, {"$set": {"due_at": 0}})


async def test_jobs_are_counted_not_carried(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    jobs = [(await queue.add(JobSpec("x", "count", symbol=str(n))))[0] for n in range(5)]
    await queue.pause(jobs[0].id)
    await queue.delete(jobs[1].id)
    before = (await registry.get("x")).document
    await maintenance(database).count()
    after = (await registry.get("x")).document
    assert (after["jobs_count"], after["active_jobs_count"]) == (4, 3)
    # A count wakes nobody and is no event.
    assert (after["wake"], after["updated_at"]) == (before["wake"], before["updated_at"])
    for job in jobs[2:]:
        await queue.delete(job.id)
    await queue.delete(jobs[0].id)
    await next_turn(database)
    await maintenance(database).count()
    after = (await registry.get("x")).document
    assert (after["jobs_count"], after["active_jobs_count"]) == (0, 0)


async def test_of_a_fleet_one_worker_counts(empty_database: Database) -> None:
    await runner.up(empty_database)
    await ConnectorRegistry(empty_database).ensure("x", Limits(1, 1))
    await JobQueue(empty_database).add(JobSpec("x", "count"))
    fleet = [maintenance(empty_database, str(number)) for number in range(8)]
    async with profiled(empty_database) as seen:
        await asyncio.gather(*(worker.count() for worker in fleet))
    by_state = [each for each in seen if each["command"].get("hint") == BY_EXCHANGE_STATE.name]
    assert len(by_state) == 1
    assert all(each["docsExamined"] == 0 for each in seen), "no job was read"


async def test_the_latest_run_that_anybody_reports_counts(
    database: Database, registry: ConnectorRegistry
) -> None:
    figures = JobFigures(database)
    await figures.ran({"x": 2_000_000})
    await figures.ran({"x": 1_000_000, "y": 3_000_000, "gone": 1})
    times = {each.exchange_id: each.document["last_job_run_time"] for each in await registry.all()}
    assert times == {
        "x": datetime.fromtimestamp(2_000, UTC),
        "y": datetime.fromtimestamp(3_000, UTC),
    }


async def test_a_worker_tells_when_it_last_ran_something_of_an_exchange(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count"))
    async with Limiter(database) as limiter, asyncio.timeout(120):
        config = WorkerConfig("ann", until_idle=True)
        await Worker(database, limiter, HandlerRegistry({"count": count}), config).run()
    began_ms = (await queue.get(job.id)).document["stats"]["last_run_at"]
    shown = (await registry.get("x")).document["last_job_run_time"]
    assert abs(shown.timestamp() * 1000 - began_ms) < 60_000
    assert (await registry.get("y")).document["last_job_run_time"] is None


async def deleted(database: Database, queue: JobQueue, name: str, days: float) -> Job:
    """A job that was deleted so many days ago."""
    job, _ = await queue.add(JobSpec("x", "count", symbol=name))
    await queue.delete(job.id)
    then = datetime.now(UTC) - timedelta(days=days)
    await database.jobs.update_one({"_id": job.id}, {"$set": {"updated_at": then}})
    return job


async def test_what_was_deleted_long_ago_goes_for_good(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    await deleted(database, queue, "old", days=8)
    young = await deleted(database, queue, "young", days=6)
    live, _ = await queue.add(JobSpec("x", "count", symbol="live"))
    past = datetime.now(UTC) - timedelta(days=400)
    await database.jobs.update_one({"_id": live.id}, {"$set": {"updated_at": past}})
    await maintenance(database).take_turn()
    left = {document["_id"] for document in await database.jobs.find({})}
    assert left == {young.id, live.id}
    await next_turn(database)
    await Maintenance(database, "ann", 10, None, 5.5).take_turn()
    assert [document["_id"] for document in await database.jobs.find({})] == [live.id]


async def test_a_deleted_job_that_still_runs_waits_for_its_worker(
    database: Database, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "count"))
    await Leasing(database, "ann").claim("x")
    await queue.delete(job.id)
    past = datetime.now(UTC) - timedelta(days=400)
    await database.jobs.update_one({"_id": job.id}, {"$set": {"updated_at": past}})
    assert await purge(database, 7) == 0
    await database.jobs.update_one({"_id": job.id}, {"$set": {"state": State.IDLE.value}})
    assert await purge(database, 7) == 1


async def test_many_are_purged_some_at_a_time_the_oldest_first_and_by_index(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.up(empty_database)
    monkeypatch.setattr(purging, "AT_ONCE", 10)
    monkeypatch.setattr(purging, "BATCHES", 3)
    queue = JobQueue(empty_database)
    job = await deleted(empty_database, queue, "first", days=100)
    young = [
        {**job.document, "_id": ObjectId(), "status": "deleted", "updated_at": datetime.now(UTC)}
        for _ in range(200)
    ]
    old = [
        {**each, "_id": ObjectId(), "updated_at": each["updated_at"] - timedelta(days=50 - number)}
        for number, each in enumerate(young[:39])
    ]
    await empty_database.jobs.insert_many([*young, *old])
    async with profiled(empty_database) as seen:
        assert await purge(empty_database, 7) == 30
    looks = [each for each in seen if each["op"] == "query"]
    assert [each["nreturned"] for each in looks] == [10, 10, 10]
    assert all(each["keysExamined"] <= 11 for each in looks)
    assert not any(each.get("hasSortStage") for each in looks)
    left = await empty_database.jobs.find({}, sort=[("updated_at", 1)])
    assert [each["_id"] for each in left[:10]] == [each["_id"] for each in old[29:]]
    assert await purge(empty_database, 7) == 10
    assert await purge(empty_database, 7) == 0
    assert await empty_database.jobs.count_documents({}) == 200


async def test_a_worker_reports_the_room_on_the_disk_of_its_lake(
    database: Database, tmp_path: Path
) -> None:
    root = str(tmp_path / "not" / "made" / "yet")
    duty = Maintenance(database, "ann", 1, data_root=root)
    going = asyncio.create_task(duty.keep_going())
    try:
        [worker] = await until(LiveWorkers(database).all, "the worker is seen")
    finally:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
    assert 0 < worker["disk"]["free_bytes"] <= worker["disk"]["total_bytes"]
    assert metrics.DISK_TOTAL._value.get() == worker["disk"]["total_bytes"]
