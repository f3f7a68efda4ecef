"""A rolling upgrade with two versions of the schema: the old leave, the new go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.queue import JobQueue
from collector.mongo.schema import VERSION
from migrations import runner
from migrations.versions import MIGRATIONS, Migration
from tests.acceptance.live import live
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

NEWER = "tests.acceptance.newer_program"


async def nothing(database: Database) -> None:
    """The next version's step."""


NEXT = (*MIGRATIONS, Migration(VERSION + 1, "next version", nothing))


async def test_the_old_version_drains_and_leaves_and_the_new_one_goes_on(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    queue = JobQueue(database)
    async with live(mongo_uri, database.raw.name, tmp_path) as old:
        backfill, _ = await old.collecting()
        await old.gets_on(backfill)
        await runner.up(database, NEXT)
        for process in (old.worker, old.api.process):
            assert await process.ended() == 8, process.said
            [line] = process.lines("schema_newer")
            assert (line["schema"], line["known"]) == (VERSION + 1, VERSION)
            assert "start the new version" in process.said
        job = await queue.get(backfill)
        put_down = ("queued", "waiting_rate_limit")  # The latter when its budget was spent.
        assert job.state.value in put_down, "it was put down, not abandoned"
        assert job.attempt == 0
        async with program(NEWER, "workers", **old.settings):

            async def further() -> bool:
                return (await queue.get(backfill)).cursor.since_ms > job.cursor.since_ms

            await until(further, "the new version goes on where the old one stopped")
