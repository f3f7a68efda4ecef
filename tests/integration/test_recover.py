"""A lost database comes back from the lake as it was, and stored bars are not fetched again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.wishes import bring_back
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.network import place_of
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.jobs.stream import stream_jobs
from collector.operations import connected_jobs, connectors
from collector.operations.recovery import recover
from collector.operations.wishes import FOLDER, record_changes, record_wishes, recorded
from collector.store.store import Store
from migrations import runner
from tests.support.local_collector import DAY, MINUTE, SYMBOL, collecting, put

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.local_collector import Collecting

DAYS = 365 if os.environ.get("COLLECTOR_CHAOS") == "long" else 3


async def lose(database: Database) -> None:
    """As if MongoDB's files were deleted: nothing is left, not even the schema."""
    for name in await database.raw.list_collection_names():
        await database.raw[name].delete_many({})


async def recovered(database: Database, store: Store) -> Any:
    await runner.up(database)
    return await recover(database, store)


async def by_type(database: Database) -> dict[str, Job]:
    return {job.type: job for job in await JobQueue(database).find()}


async def fetched(c: Collecting) -> None:
    """A stream of the whole history, up to the last closed bar."""
    specs = stream_jobs("simulated", SYMBOL, "1m", now_ms=c.first_ms + DAYS * DAY)
    await connectors.ensure(c.database, "simulated")
    jobs = await connected_jobs.add(c.database, specs)
    by = {job.type: job for job, _ in jobs}
    await c.until(by["ohlcv_backfill"], lambda job: job.state is State.SUCCESS, 600)
    await c.until(by["ohlcv_incremental"], lambda job: job.document["stats"]["success"] > 0)


def asked_again(c: Collecting, stored_until: int) -> list[Any]:
    """Requests for bars that begin before the end of what was stored."""
    return [each for each in c.journal() if each.start_ms is None or each.start_ms < stored_until]


async def test_no_stored_bar_is_fetched_again(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, days=DAYS) as c:
        await fetched(c)
        await record_wishes(database, c.store.storage)
    store, series = c.store, c.series
    [stored] = store.covered(series)
    before = await by_type(database)
    await lose(database)

    done = await recovered(database, store)

    assert (done.series, done.connectors, done.damaged) == (1, ("simulated",), ())
    after = await by_type(database)
    assert after.keys() == before.keys()
    backfill, live = after["ohlcv_backfill"], after["ohlcv_incremental"]
    assert (backfill.state, backfill.status) == (State.SUCCESS, Status.PAUSED)
    assert backfill.cursor.done
    assert live.cursor.since_ms == stored.to_ms
    async with collecting(database, tmp_path, days=DAYS) as c:
        await c.queue.run(live.id)
        await c.until(live, lambda job: job.document["stats"]["success"] > 0)
        scan = after["gap_scan"]
        await c.queue.run(scan.id)
        await c.until(scan, lambda job: job.document["stats"]["success"] > 0)
        assert asked_again(c, stored.to_ms) == []
    assert await JobQueue(database).find({"type": "gap_backfill"}) == []


async def test_only_the_rest_of_a_history_is_fetched(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        first, half, end = c.first_ms, c.first_ms + DAY, c.first_ms + 2 * DAY
        hole = first + DAY // 4
        put(c, first, hole)
        put(c, hole + 60 * MINUTE, half)
        store = c.store
    await lose(database)
    await runner.up(database)
    await connectors.ensure(database, "simulated")
    cursor = Cursor(until_ms=end)
    job, _ = await JobQueue(database).add(
        JobSpec("simulated", "ohlcv_backfill", SYMBOL, "1m", cursor=cursor)
    )
    begun = {"progress": {"from_ms": first}, "cursor.page": 1, "cursor.since_ms": first}
    await database.jobs.update_one({"_id": job.id}, {"$set": begun})
    await record_wishes(database, store.storage)
    await lose(database)

    await recovered(database, store)

    job = (await by_type(database))["ohlcv_backfill"]
    assert job.cursor == Cursor(since_ms=hole, until_ms=end, page=1)
    assert job.document["requested_since"] == 0
    async with collecting(database, tmp_path) as c:
        await c.until(job, lambda job: job.state is State.SUCCESS)
        asked = [(each.start_ms, each.start_ms + each.rows * MINUTE) for each in c.journal()]
        # A page begins at a bar before it, and ends at one behind it.
        owed = [(hole - MINUTE, hole + 61 * MINUTE), (half - MINUTE, end + MINUTE)]
        assert asked
        assert all(any(a <= x and y <= b for a, b in owed) for x, y in asked), asked
        assert c.stored(first, end) == c.truth(first, end)


async def test_connectors_and_jobs_come_back_as_they_were(
    database: Database, tmp_path: Path
) -> None:
    registry, queue, store = ConnectorRegistry(database), JobQueue(database), Store(tmp_path)
    await connectors.ensure(database, "simulated", {"rate_limit": 7}, "by hand")
    await registry.block("simulated", "told to stop", for_ms=3_600_000)
    await registry.pause("simulated")
    specs = [
        *stream_jobs("simulated", SYMBOL, "1m", now_ms=10 * DAY, since_ms=5 * DAY),
        JobSpec("simulated", "trades_incremental", SYMBOL, priority=3, params={"history": "net"}),
        JobSpec("simulated", "price_stream", params={"symbols": [SYMBOL]}),
    ]
    jobs = await connected_jobs.add(database, specs)
    await queue.pause(jobs[0][0].id)
    network, _ = await queue.add(JobSpec(place_of("net"), "history_apply"))
    connector = (await registry.get("simulated")).document
    await record_wishes(database, store.storage)
    await lose(database)
    second = await database.now_ms() // 1000

    await recovered(database, store)

    again = (await registry.get("simulated")).document
    for name in ("rate_limit", "notes", "status", "blocked_until", "blocked_reason"):
        assert again[name] == connector[name], name
    after = await by_type(database)
    for job in [*(job for job, _ in jobs), network]:
        back = after[job.type]
        assert back.cursor == job.cursor
        assert (back.priority, back.params) == (job.priority, job.params)
        assert back.schedule == job.schedule
        assert back.fence >= second, "above every fence that was given before"
    assert after["ohlcv_incremental"].status is Status.PAUSED


async def test_a_new_fxcm_session_is_above_the_old_and_waits_for_its_end(
    database: Database,
) -> None:
    now_ms = await database.now_ms()
    assert await bring_back(database, {"exchange_id": "fxcm", "rate_limit": 5})
    session = (await ConnectorRegistry(database).get("fxcm")).document["session"]
    assert session["fence"] >= now_ms // 1000
    assert session["free_at"] > now_ms
    assert not await bring_back(database, {"exchange_id": "fxcm", "rate_limit": 6})


async def test_a_removed_stream_does_not_come_back(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + DAY)
        await connectors.ensure(database, "simulated")
        await record_wishes(database, c.store.storage)
    await lose(database)
    done = await recovered(database, c.store)
    assert done.not_requested == (str(c.series),)
    assert "ohlcv_incremental" not in await by_type(database)


async def test_jobs_made_before_recovering_skip_what_is_stored(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + 2 * DAY)
        store, first = c.store, c.first_ms
    await lose(database)
    await runner.up(database)
    await connectors.ensure(database, "simulated")
    now_ms = first + 2 * DAY + 60 * MINUTE
    specs = stream_jobs("simulated", SYMBOL, "1m", now_ms=now_ms, since_ms=first)
    jobs = await connected_jobs.add(database, specs)

    done = await recovered(database, store)

    assert done.moved == (str(jobs[1][0].id),)
    async with collecting(database, tmp_path) as c:
        backfill = jobs[1][0]
        await c.until(backfill, lambda job: job.state is State.SUCCESS)
        pages = [each for each in c.journal() if each.interval == "1m" and each.limit > 1]
        assert pages
        assert min(each.start_ms for each in pages) >= first + 2 * DAY - MINUTE
        assert c.stored(first, now_ms) == c.truth(first, now_ms)


async def test_an_emptied_database_does_not_overwrite_the_record(
    database: Database, tmp_path: Path
) -> None:
    storage = Store(tmp_path).storage
    await connectors.ensure(database, "simulated")
    assert await record_wishes(database, storage)
    assert not await record_wishes(database, storage), "nothing has changed"
    kept = recorded(storage)
    await database.jobs.delete_many({})
    await database.connectors.delete_many({})
    assert not await record_wishes(database, storage)
    await lose(database)
    assert not await record_wishes(database, storage)
    await runner.up(database)
    await connectors.ensure(database, "binance")
    assert await record_wishes(database, storage)
    assert kept.items() <= recorded(storage).items()
    done = await recover(database, Store(tmp_path))
    assert done.connectors == ("simulated",)
    assert len(storage.names(FOLDER)) == 1, "this database has recorded everything"


async def test_a_process_records_what_it_changed(database: Database, tmp_path: Path) -> None:
    storage = Store(tmp_path).storage
    await record_changes(database, storage)
    assert recorded(storage) == {}
    await connectors.ensure(database, "simulated")
    await record_changes(database, storage)
    [record] = recorded(storage).values()
    assert [each["exchange_id"] for each in record.connectors] == ["simulated"]


async def test_an_exchange_that_is_not_known_is_reported_and_its_record_is_kept(
    database: Database, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.storage.write_atomic(
        f"{FOLDER}/lost.json",
        b'{"format": 1, "recorded_ms": 1, "connectors": [{"exchange_id": "nowhere"}], "jobs": []}',
    )
    done = await recover(database, store)
    assert (done.unknown, done.connectors) == (("nowhere",), ())
    assert store.storage.names(FOLDER) == ["lost.json"]
