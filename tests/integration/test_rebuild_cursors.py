"""MongoDB is lost and the files are there: the jobs come back and nothing is fetched twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.operations.rebuilt_cursors import rebuild_cursors
from collector.store.store import Store
from migrations import runner
from tests.support.local_collector import DAY, MINUTE, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

SERIES = ("ohlcv_backfill", "ohlcv_incremental")


async def test_a_lost_database_is_rebuilt_from_the_files(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        half = c.first_ms + DAY
        job = await c.backfill(half)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        store, first_ms = c.store, c.first_ms
    for name in ("jobs", "connectors", "markets"):
        await database.raw[name].delete_many({})
    await runner.up(database)

    rebuilt = await rebuild_cursors(database, store)

    assert (rebuilt.series, rebuilt.connectors) == (1, ("simulated",))
    jobs = {job.type: job for job in await JobQueue(database).find() if job.type in SERIES}
    assert jobs["ohlcv_incremental"].cursor.since_ms == half
    assert jobs["ohlcv_incremental"].cursor.last_ts == half - MINUTE
    assert jobs["ohlcv_backfill"].cursor.until_ms == first_ms
    again = await rebuild_cursors(database, store)
    assert (again.connectors, again.jobs) == ((), ())
    async with collecting(database, tmp_path) as c:
        end = c.first_ms + 2 * DAY
        live = jobs["ohlcv_incremental"]
        await c.until(live, lambda job: job.cursor.since_ms >= end)
        await c.until(jobs["ohlcv_backfill"], lambda job: job.state is State.SUCCESS)
        assert c.stored(c.first_ms, end) == c.truth(c.first_ms, end)
        assert c.store.covered(c.series)[0].from_ms == c.first_ms
        pages = [entry for entry in c.journal() if entry.interval == "1m" and entry.limit != 1]
        asked = {entry.start_ms for entry in pages}
        assert min(ms for ms in asked if ms is not None) >= half, "stored bars were asked for again"


async def test_an_empty_lake_makes_nothing(database: Database, tmp_path: Path) -> None:
    rebuilt = await rebuild_cursors(database, Store(tmp_path))
    assert (rebuilt.series, rebuilt.connectors, rebuilt.jobs) == (0, (), ())
