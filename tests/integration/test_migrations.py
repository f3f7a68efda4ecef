"""Migrations: in order, once, one runner at a time, and again after a death."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.errors import RetryLater, SchemaMismatch
from collector.mongo import schema
from migrations import runner
from migrations.versions import MIGRATIONS, Migration

if TYPE_CHECKING:
    from collector.mongo.client import Database


def test_the_program_knows_its_newest_migration() -> None:
    assert MIGRATIONS[-1].version == schema.VERSION
    assert [m.version for m in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


async def test_up_makes_the_indexes_and_is_on_record(empty_database: Database) -> None:
    with pytest.raises(SchemaMismatch, match="run `collector migrate up`"):
        await schema.require_current(empty_database)
    applied = await runner.up(empty_database)
    assert [m.version for m in applied] == [m.version for m in MIGRATIONS]
    await schema.require_current(empty_database)
    assert all(entry.finished_at for entry in await runner.status(empty_database))
    indexes = await empty_database.raw["jobs"].index_information()
    assert {"lease", "unique_key", "next_due", "running", "series"} <= set(indexes)
    assert await runner.up(empty_database) == []


async def test_a_step_that_dies_is_repeated_and_later_ones_wait(empty_database: Database) -> None:
    calls: list[str] = []

    async def first(database: Database) -> None:
        calls.append("first")

    async def second(database: Database) -> None:
        calls.append("second")
        if calls.count("second") == 1:
            raise OSError("the plug was pulled")

    steps = (Migration(1, "one", first), Migration(2, "two", second))
    with pytest.raises(OSError, match="plug"):
        await runner.up(empty_database, steps)
    assert await schema.current_version(empty_database) == 1
    assert [e.finished_at is None for e in await runner.status(empty_database, steps)] == [
        False,
        True,
    ]
    await runner.up(empty_database, steps)
    assert calls == ["first", "second", "second"]


async def test_two_runners_at_once_do_the_work_once(empty_database: Database) -> None:
    calls = 0

    async def slow(database: Database) -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.05)

    steps = (Migration(1, "slow", slow),)
    await asyncio.gather(*(runner.up(empty_database, steps) for _ in range(5)))
    assert calls == 1


async def test_a_dead_runners_lease_runs_out(empty_database: Database) -> None:
    assert await runner._take(empty_database, "dead", 300)
    with pytest.raises(RetryLater, match="another migration"):
        await runner.up(empty_database, wait_seconds=0.05)
    assert await runner.up(empty_database)


async def test_a_newer_schema_is_refused(database: Database) -> None:
    await database.system.update_one({"_id": "schema"}, {"$set": {"version": 99}})
    with pytest.raises(SchemaMismatch, match="upgrade this program"):
        await schema.require_current(database)
    with pytest.raises(SchemaMismatch, match="schema 99"):
        await runner.up(database)


async def test_legacy_limiter_fields_are_removed_from_jobs(empty_database: Database) -> None:
    jobs = empty_database.raw["jobs"]
    await jobs.insert_one({"unique_key": "k", "status": "active", "rate_limit_usage": 3})
    await runner.up(empty_database)
    job = await jobs.find_one({})
    assert job is not None
    assert set(job) == {"_id", "unique_key", "status"}
