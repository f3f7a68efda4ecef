"""A database that is dropped under those who follow its changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.errors import DatabaseUnavailable
from collector.jobs.states import State
from collector.operations import connectors
from collector.operations.recovery import recover
from collector.operations.wishes import record_wishes
from migrations import runner
from tests.support.local_collector import DAY, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


async def test_a_stream_of_a_dropped_database_ends(empty_database: Database) -> None:
    await empty_database.raw["jobs"].insert_one({})

    async def to_the_end() -> None:
        async with empty_database.changes([]) as following:
            await empty_database.raw.client.drop_database(empty_database.raw.name)
            while True:
                await following()

    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(to_the_end(), 120)


async def test_a_worker_that_runs_through_the_loss_goes_on_after_a_recovery(
    empty_database: Database, tmp_path: Path
) -> None:
    database = empty_database
    await runner.up(database)
    async with collecting(database, tmp_path, limits=Limits(20, 1_000)) as c:
        await connectors.ensure(database, "simulated")
        job = await c.backfill(c.first_ms + 2 * DAY)
        await c.until(job, lambda job: job.cursor.since_ms > c.first_ms)
        await record_wishes(database, c.store.storage)
        await database.raw.client.drop_database(database.raw.name)
        await runner.up(database)
        await recover(database, c.store)
        [job] = await c.queue.find({"type": "ohlcv_backfill"})
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(c.first_ms, c.first_ms + DAY) == c.truth(c.first_ms, c.first_ms + DAY)
