"""Migrations: in order, once, one runner at a time, and again after a death."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.errors import RetryLater, SchemaMismatch
from collector.jobs.listing import (
    BY_EXCHANGE,
    BY_EXCHANGE_STATE,
    BY_STATE,
    BY_STATUS,
    BY_SYMBOL,
)
from collector.mongo import schema
from migrations import runner
from migrations.versions import MIGRATIONS, Migration, m0003_job_lists

if TYPE_CHECKING:
    from collector.mongo.client import Database

LEASING = {"lease", "unique_key", "next_due", "running"}
LISTING = {
    "by_status",
    "by_exchange",
    "by_symbol",
    "by_state",
    "by_exchange_state",
    "lag",
    "deleted",
}


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
    assert set(indexes) == {"_id_", *LEASING, *LISTING, "failing", "silences", "requested"}
    assert await runner.up(empty_database) == []


async def test_a_worker_that_runs_may_make_a_collection_first(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a lost database, say: its worker writes on while `recover` makes it anew."""

    async def before_it_was_made(*_: object, **__: object) -> list[str]:
        return []

    for name in ("job_runs", "live", "history_inbox", "history_networks"):
        await empty_database.raw[name].insert_one({})
    for look in ("list_collection_names", "_list_collection_names"):  # ours, and the driver's own
        monkeypatch.setattr(type(empty_database.raw), look, before_it_was_made)
    await runner.up(empty_database)
    await schema.require_current(empty_database)


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


async def test_the_indexes_of_many_jobs_replace_those_that_nothing_uses(
    empty_database: Database,
) -> None:
    await runner.up(empty_database, MIGRATIONS[:2])
    jobs = empty_database.raw["jobs"]
    before = set(await jobs.index_information())
    assert before == {"_id_", *LEASING, "series", "counts"}
    await jobs.insert_many(
        {"unique_key": str(number), "status": status, "exchange_id": "x", "type": "count"}
        for number, status in enumerate(("active", "paused", "deleted"))
    )
    documents = await jobs.find().to_list()
    # Dying half-way leaves some of both; a second run ends the same.
    await jobs.drop_index("series")
    await jobs.create_index([("status", 1), ("_id", 1)], name="by_status")
    assert [each.version for each in await runner.up(empty_database, MIGRATIONS[:3])] == [3]
    assert set(await jobs.index_information()) == {"_id_", *LEASING, *LISTING}
    assert await jobs.find().to_list() == documents
    await m0003_job_lists.apply(empty_database)
    assert set(await jobs.index_information()) == {"_id_", *LEASING, *LISTING}


async def test_what_lists_count_on_is_what_the_migration_makes(database: Database) -> None:
    indexes = await database.raw["jobs"].index_information()
    for index in (BY_STATUS, BY_EXCHANGE, BY_SYMBOL, BY_STATE, BY_EXCHANGE_STATE):
        fields = [name for name, _ in indexes[index.name]["key"]]
        assert fields == [*index.fields, "status", "_id"]
