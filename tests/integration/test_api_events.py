"""Changes as server-sent events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from api import feed
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from tests.support.local_api import emptied, serving
from tests.support.server_events import listening, next_event

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import ClientResponse

    from collector.mongo.client import Database
    from tests.support.local_api import Client


@pytest.fixture
async def database(served_database: Database) -> Database:
    await emptied(served_database)
    return served_database


@pytest.fixture
async def client(server: Client, database: Database) -> Client:
    await ConnectorRegistry(database).ensure("simulated", Limits(1000, 1000))
    return server


async def next_of(response: ClientResponse, wanted: str) -> Any:
    """The next event of a name."""
    name, data = await next_event(response)
    while name != wanted:
        name, data = await next_event(response)
    return data


async def test_every_listener_hears_of_jobs_and_connectors(
    client: Client, database: Database
) -> None:
    url = "/api/v1/events"
    async with client.session.get(url) as one, client.session.get(url) as two:
        await listening(one)
        await listening(two)
        job, _ = await JobQueue(database).add(JobSpec("simulated", "count"))
        for response in (one, two):
            data = await next_of(response, "job")
            assert (data["id"], data["state"]) == (str(job.id), "queued")
        await ConnectorRegistry(database).pause("simulated")
        for response in (one, two):
            while (await next_of(response, "connector"))["status"] != "paused":
                pass  # Its creation, before this test, may come late.


async def test_tokens_make_no_events(client: Client, database: Database) -> None:
    async with Limiter(database) as limiter, client.session.get("/api/v1/events") as response:
        await listening(response)
        queue = JobQueue(database)
        for symbol in ("A/USDT", "B/USDT"):
            # What was changed before this test comes with the first of them at the latest.
            await queue.add(JobSpec("simulated", "count", symbol=symbol))
            while (await next_event(response))[1].get("symbol") != symbol:
                pass
        for _ in range(5):
            await limiter.acquire("simulated", patience=1.0)
        job, _ = await queue.add(JobSpec("simulated", "count"))
        name, data = await next_event(response)
        assert (name, data["id"]) == ("job", str(job.id))


async def test_a_listener_that_falls_behind_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_HELD", 2)
    listener = feed.Listener()
    for key in ("a", "b", "b"):
        listener.offer(feed.ServerEvent("job", key, b"{}"))
    assert not listener.ended
    listener.offer(feed.ServerEvent("job", "c", b"{}"))
    assert listener.ended


async def test_stopping_the_server_ends_the_stream(database: Database, tmp_path: Path) -> None:
    async with (
        serving(database, tmp_path) as client,
        client.session.get("/api/v1/events") as response,
    ):
        await listening(response)
        client.services.feed.close()
        async with asyncio.timeout(120):
            assert await response.content.read() == b"\n"
