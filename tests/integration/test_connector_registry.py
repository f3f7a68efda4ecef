"""One connector per exchange, whoever asks and however often."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pymongo.errors import DuplicateKeyError

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import NotFound
from collector.operations import connected_jobs

if TYPE_CHECKING:
    from collector.mongo.client import Database

LIMITS = Limits(20, 1000)


@pytest.fixture
def registry(database: Database) -> ConnectorRegistry:
    return ConnectorRegistry(database)


async def test_a_new_connector_has_every_field_of_the_seed(registry: ConnectorRegistry) -> None:
    connector, made = await registry.ensure("binance", LIMITS, notes="$notes are just text")
    assert made
    fields = dict(connector.document)
    assert fields["notes"] == "$notes are just text"
    expected = {
        "exchange_id": "binance",
        "status": "active",
        "rate_limit": 20,
        "rate_limit_period_ms": 1000,
        "rate_limit_usage": 0,
        "rate_limit_window_start": 0,
        "rate_limit_reset_at": 0,
        "last_job_run_time": None,
        "jobs_count": 0,
        "active_jobs_count": 0,
        "algorithm": "sliding_window",
        "blocked_until": 0,
    }
    assert expected.items() <= fields.items()
    assert connector.creation_date == fields["updated_at"]


async def test_ensuring_twice_returns_the_first_unchanged(registry: ConnectorRegistry) -> None:
    first, _ = await registry.ensure("binance", LIMITS)
    again, made = await registry.ensure("binance", Limits(99, 5))
    assert not made
    assert again.document == first.document


async def test_a_connector_that_is_deleted_the_next_moment_was_made_all_the_same(
    database: Database, registry: ConnectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert = database.connectors.find_one_and_update

    async def upsert_and_lose(*args: Any, **options: Any) -> Any:
        document = await upsert(*args, **options)
        await database.connectors.update_one({}, {"$set": {"status": "deleted"}})
        return document

    monkeypatch.setattr(database.connectors, "find_one_and_update", upsert_and_lose)
    connector, made = await registry.ensure("binance", LIMITS)
    assert made
    assert connector.status == "active"
    again, made_again = await registry.ensure("binance", LIMITS)
    assert made_again
    assert again.document["creation_date"] == connector.document["creation_date"]


async def test_two_hundred_at_once_make_one(
    database: Database, registry: ConnectorRegistry
) -> None:
    answers = await asyncio.gather(*(registry.ensure("binance", LIMITS) for _ in range(200)))
    assert sum(made for _, made in answers) == 1
    assert await database.connectors.count_documents({}) == 1


async def test_the_database_itself_refuses_a_second_one(database: Database) -> None:
    await database.raw["connectors"].insert_one({"exchange_id": "binance"})
    with pytest.raises(DuplicateKeyError):
        await database.raw["connectors"].insert_one({"exchange_id": "binance"})


async def test_a_deleted_connector_starts_over_but_its_ban_stays(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("binance", LIMITS)
    banned = await registry.block("binance", "418", for_ms=60_000)
    await connected_jobs.remove_connector(database, "binance")
    with pytest.raises(NotFound):
        await registry.get("binance")
    reborn, made = await registry.ensure("binance", Limits(5, 100))
    assert made
    assert reborn.limits.rate_limit == 5
    assert reborn.document["blocked_until"] == banned.document["blocked_until"]
