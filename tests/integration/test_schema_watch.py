"""A running process that meets a newer schema leaves and says why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.errors import SchemaMismatch
from collector.mongo.schema import VERSION
from collector.mongo.schema_watch import leaving_newer_schema
from migrations import runner
from migrations.versions import MIGRATIONS, Migration
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


async def nothing(database: Database) -> None:
    """A step of the next version."""


NEXT = (*MIGRATIONS, Migration(VERSION + 1, "next", nothing))


async def test_it_leaves_when_the_schema_is_raised_and_says_why(database: Database) -> None:
    async def running() -> None:
        left = asyncio.Event()
        async with leaving_newer_schema(database, left.set, every_seconds=0.01):
            await runner.up(database, NEXT)
            await asyncio.wait_for(left.wait(), 120)

    with pytest.raises(SchemaMismatch, match=f"schema {VERSION + 1}.*start the new version"):
        await running()


async def test_an_emptied_database_ends_nothing(database: Database) -> None:
    left = asyncio.Event()
    looks = database.system.find_one
    seen = asyncio.Semaphore(0)

    async def counted(*args: object, **options: object) -> object:
        found = await looks(*args, **options)
        seen.release()
        return found

    database.system.find_one = counted  # type: ignore[method-assign, assignment]
    async with leaving_newer_schema(database, left.set, every_seconds=0.01):
        await database.system.delete_many({})
        for _ in range(3):
            await seen.acquire()
    assert not left.is_set()


async def test_an_api_on_an_emptied_database_is_not_ready_until_it_is_migrated(
    empty_database: Database, tmp_path: Path
) -> None:
    await runner.up(empty_database)
    async with serving(empty_database, tmp_path) as client:
        assert (await client.get("/readyz")).status == 200
        for name in await empty_database.raw.list_collection_names():
            await empty_database.raw[name].drop()
        answer = await client.get("/readyz")
        assert (answer.status, answer.body["parts"]["schema"]) == (503, "schema_mismatch")
        await runner.up(empty_database)
        assert (await client.get("/readyz")).status == 200
