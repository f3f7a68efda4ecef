"""One connector per exchange, whoever asks and however often."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pymongo.errors import DuplicateKeyError

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import NotFound
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue

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
    registry: ConnectorRegistry,
) -> None:
    await registry.ensure("binance", LIMITS)
    banned = await registry.block("binance", "418", for_ms=60_000)
    await registry.remove("binance")
    with pytest.raises(NotFound):
        await registry.get("binance")
    reborn, made = await registry.ensure("binance", Limits(5, 100))
    assert made
    assert reborn.limits.rate_limit == 5
    assert reborn.document["blocked_until"] == banned.document["blocked_until"]


async def test_job_counts_are_counted_not_carried(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("binance", LIMITS)
    queue = JobQueue(database)
    jobs = [(await queue.add(JobSpec("binance", "count", symbol=str(n))))[0] for n in range(5)]
    await queue.pause(jobs[0].id)
    await queue.delete(jobs[1].id)
    connector = await registry.update_job_counts("binance")
    assert connector.document["jobs_count"] == 4
    assert connector.document["active_jobs_count"] == 3
