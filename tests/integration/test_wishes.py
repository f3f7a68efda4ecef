"""The record of what was requested: what it costs to keep it, and that it misses no change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bson import Timestamp

from collector.backoff import Backoff
from collector.durations import HOUR_MS
from collector.jobs import settlement
from collector.jobs.freezing import Freezing, Frozen
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.operations import connectors, wishes
from collector.operations.wishes import record_wishes, recorded
from collector.store.store import Store
from migrations import runner
from tests.support.crowd import fill_jobs
from tests.support.mongo_profile import profiled

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.lease import Lease
    from collector.jobs.wishes import JobWish
    from collector.mongo.client import Database
    from collector.store.port import Storage

JOBS = 1_000


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Store(tmp_path).storage


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every statement had ended long ago."""
    monkeypatch.setattr(wishes, "SETTLED_MS", -HOUR_MS)


def by_symbol(storage: Storage) -> dict[str | None, JobWish]:
    [record] = recorded(storage).values()
    return {job.symbol: job for job in record.jobs if job.type == "ohlcv_backfill"}


async def backfill(database: Database, symbol: str) -> JobSpec:
    spec = JobSpec("simulated", "ohlcv_backfill", symbol, "1m", cursor=Cursor(until_ms=HOUR_MS))
    await JobQueue(database).add(spec)
    return spec


@pytest.fixture
async def recorded_run(
    database: Database, storage: Storage, settled: None
) -> tuple[Leasing, Lease]:
    """The first run of a backfill that is on record."""
    await backfill(database, "A/B")
    await record_wishes(database, storage)
    leasing = Leasing(database, "ann")
    [lease] = await leasing.claim("simulated")
    return leasing, lease


@pytest.mark.usefixtures("settled")
async def test_when_nothing_was_requested_no_job_is_read(
    empty_database: Database, storage: Storage
) -> None:
    await runner.up(empty_database)
    await fill_jobs(empty_database, JOBS)
    async with profiled(empty_database) as first:
        assert await record_wishes(empty_database, storage)
    async with profiled(empty_database) as second:
        assert not await record_wishes(empty_database, storage)
    read = [each["nreturned"] for each in first]
    assert sum(read) > JOBS / 2
    assert max(read) <= 200, "decoding many documents at once would hold up the process"
    assert len(second) == 1
    assert second[0]["docsExamined"] <= 1


@pytest.mark.usefixtures("settled")
async def test_what_is_requested_is_recorded(database: Database, storage: Storage) -> None:
    await connectors.ensure(database, "simulated")
    queue = JobQueue(database)
    for symbol in ("A/B", "C/D", "E/F", "G/H"):
        await backfill(database, symbol)
    await record_wishes(database, storage)
    jobs = {job.symbol: job for job in await queue.find({"type": "ohlcv_backfill"})}

    await queue.pause(jobs["A/B"].id)
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["A/B"].status == "paused"

    await queue.change(jobs["C/D"].id, priority=7)
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["C/D"].priority == 7

    await queue.delete(jobs["E/F"].id)
    assert await record_wishes(database, storage)
    assert "E/F" not in by_symbol(storage)

    await Freezing(database).freeze("simulated", "G/H", Frozen.DELISTED, "it has left")
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["G/H"].status == "paused"

    await backfill(database, "I/J")
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["I/J"].cursor["until_ms"] == HOUR_MS
    assert not await record_wishes(database, storage)


async def test_a_history_that_ends_is_recorded_and_its_pages_are_not(
    database: Database, storage: Storage, recorded_run: tuple[Leasing, Lease]
) -> None:
    leasing, lease = recorded_run
    progress = {"from_ms": 5, "until_ms": HOUR_MS}
    await leasing.commit(lease, Cursor(10, HOUR_MS, page=1), progress)
    assert not await record_wishes(database, storage)
    done = Cursor(HOUR_MS, HOUR_MS, page=2, done=True)
    await leasing.settle(lease, settlement.done(cursor=done, progress=progress))
    assert await record_wishes(database, storage)
    job = by_symbol(storage)["A/B"]
    assert (job.status, job.cursor["done"], job.begins_ms) == ("paused", True, 5)


async def test_a_job_that_fails_for_good_is_recorded_as_stopped(
    database: Database, storage: Storage, recorded_run: tuple[Leasing, Lease]
) -> None:
    leasing, lease = recorded_run
    await leasing.settle(lease, settlement.retry(1, "again", Backoff(0, 0, 0), 0.0))
    assert not await record_wishes(database, storage)
    [lease] = await leasing.claim("simulated")
    await leasing.settle(lease, settlement.fail(lease.job, "no such market"))
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["A/B"].status == "paused"


@pytest.mark.usefixtures("settled")
async def test_jobs_that_fill_gaps_are_no_change(database: Database, storage: Storage) -> None:
    await backfill(database, "A/B")
    await record_wishes(database, storage)
    async with profiled(database) as statements:
        gap = JobSpec("simulated", "gap_backfill", "A/B", "1m", cursor=Cursor(1, 2))
        await JobQueue(database).add(gap)
        [lease] = await Leasing(database, "ann").claim("simulated", 1)
        assert lease.job.type == "gap_backfill"
        await Leasing(database, "ann").settle(lease, settlement.done(vanish=True))
        assert not await record_wishes(database, storage)
    finds = [each for each in statements if each["op"] == "query"]
    assert [each["command"].get("sort") for each in finds[-1:]] == [{"requested_at": -1}]


async def test_a_statement_that_ends_late_is_not_missed(
    database: Database, storage: Storage
) -> None:
    """It took its time stamp before another change that is recorded already."""
    await backfill(database, "A/B")
    await backfill(database, "C/D")
    await record_wishes(database, storage)
    await database.jobs.update_one(
        {"symbol": "A/B"}, {"$set": {"status": "paused", "requested_at": Timestamp(1, 1)}}
    )
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["A/B"].status == "paused"


@pytest.mark.usefixtures("settled")
async def test_where_a_history_begins_is_recorded_within_the_hour(
    database: Database, storage: Storage
) -> None:
    await backfill(database, "A/B")
    await record_wishes(database, storage)
    await database.jobs.update_one({"symbol": "A/B"}, {"$set": {"progress": {"from_ms": 5}}})
    assert not await record_wishes(database, storage)
    await database.system.update_one({"_id": "identity"}, {"$inc": {"recorded.read_ms": -HOUR_MS}})
    assert await record_wishes(database, storage)
    assert by_symbol(storage)["A/B"].begins_ms == 5


@pytest.mark.usefixtures("settled")
async def test_a_record_that_was_deleted_is_written_again(
    database: Database, storage: Storage
) -> None:
    await backfill(database, "A/B")
    await record_wishes(database, storage)
    [path] = recorded(storage)
    storage.delete(path)
    assert await record_wishes(database, storage)
    assert by_symbol(storage).keys() == {"A/B"}
