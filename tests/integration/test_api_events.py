"""Changes as server-sent events."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from api import listener as listeners
from api import missed_events
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from tests.support.local_api import emptied, serving
from tests.support.server_events import listening, next_event

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp

    from collector.mongo.client import Database
    from tests.support.local_api import Client

CHANGES = "/api/v1/events?types=job,connector"
"""Without troubles, which come when they come."""


@pytest.fixture
async def database(served_database: Database) -> Database:
    await emptied(served_database)
    return served_database


@pytest.fixture
async def client(server: Client, database: Database) -> Client:
    await ConnectorRegistry(database).ensure("simulated", Limits(1000, 1000))
    return server


async def next_of(response: aiohttp.ClientResponse, wanted: str) -> Any:
    """The next event of a name."""
    name, data = await next_event(response)
    while name != wanted:
        name, data = await next_event(response)
    return data


async def test_every_listener_hears_of_jobs_and_connectors(
    client: Client, database: Database
) -> None:
    url = CHANGES
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
    async with Limiter(database) as limiter, client.session.get(CHANGES) as response:
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
    monkeypatch.setattr(listeners, "MOST_HELD", 2)
    listener = listeners.Listener()
    for key in ("a", "b", "b"):
        listener.offer(listeners.ServerEvent("job", key, b"{}"))
    assert not listener.ended
    listener.offer(listeners.ServerEvent("job", "c", b"{}"))
    assert listener.ended


async def test_stopping_the_server_ends_the_stream(database: Database, tmp_path: Path) -> None:
    async with (
        serving(database, tmp_path) as client,
        client.session.get("/api/v1/events") as response,
    ):
        await listening(response)
        client.services.feed.close()
        async with asyncio.timeout(120):
            assert b"event:" not in await response.content.read()


async def frame(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The fields of the next event or comment."""
    found: dict[str, str] = {}
    async with asyncio.timeout(120):
        while (line := (await response.content.readline()).decode().rstrip("\n")) or not found:
            assert line or not response.content.at_eof(), "the stream ended"
            name, _, value = line.partition(": ")
            found[name] = value
    return found


async def frames_until(response: aiohttp.ClientResponse, job: str) -> list[dict[str, str]]:
    """Up to the event about this job."""
    found = []
    while not found or job not in found[-1].get("data", ""):
        found.append(await frame(response))
    return found


async def next_gap(response: aiohttp.ClientResponse) -> Any:
    """What was changed before may come first."""
    while (event := await next_event(response))[0] != "gap":
        pass
    return event[1]


async def jobs_until(response: aiohttp.ClientResponse, wanted: list[str]) -> list[str]:
    """The jobs that events are about, until all of these have come; one may come twice."""
    found: list[str] = []
    while not set(wanted) <= set(found):
        name, data = await next_event(response)
        found += [data["id"]] if name == "job" else []
    return found


async def make(database: Database, symbol: str) -> str:
    job, _ = await JobQueue(database).add(JobSpec("simulated", "count", symbol=symbol))
    return str(job.id)


async def test_a_client_resumes_after_the_last_event_that_it_has(
    client: Client, database: Database
) -> None:
    async with client.session.get(CHANGES) as response:
        first = await frame(response)
        assert "id" in first
        seen = await frames_until(response, await make(database, "A/USDT"))
        assert all(each["id"] for each in seen)
    missed = [await make(database, "B/USDT"), await make(database, "C/USDT")]
    last = {"Last-Event-ID": seen[-1]["id"]}
    async with client.session.get(CHANGES, headers=last) as response:
        await listening(response)
        found = await jobs_until(response, missed)
        assert json.loads(seen[-1]["data"])["id"] not in found
        # And goes on from there.
        await jobs_until(response, [await make(database, "D/USDT")])


async def test_another_process_resumes_where_the_first_one_was(
    client: Client, database: Database, tmp_path: Path
) -> None:
    async with client.session.get(CHANGES) as response:
        seen = await frames_until(response, await make(database, "A/USDT"))
    missed = await make(database, "B/USDT")
    async with (
        serving(database, tmp_path) as other,
        other.session.get(CHANGES, headers={"Last-Event-ID": seen[-1]["id"]}) as response,
    ):
        await listening(response)
        await jobs_until(response, [missed])


async def test_resuming_twice_from_any_event_of_a_batch_misses_nothing(
    client: Client, database: Database
) -> None:
    async with client.session.get(CHANGES) as response:
        await frame(response)
        made = [await make(database, f"N{number}/USDT") for number in range(5)]
        seen: list[dict[str, str]] = []
        while {json.loads(each["data"])["id"] for each in seen} < set(made):
            each = await frame(response)
            seen += [each] if each.get("event") == "job" else []
    for at in range(len(seen)):
        received = {json.loads(each["data"])["id"] for each in seen[: at + 1]}
        asked = {"Last-Event-ID": seen[at]["id"]}
        async with client.session.get(CHANGES, headers=asked) as response:
            await listening(response)
            await jobs_until(response, [each for each in made if each not in received])


@pytest.mark.parametrize("wrong", ["1234", "82" + "F" * 60, "../../etc"])
async def test_a_gap_that_cannot_be_closed_is_an_event(client: Client, wrong: str) -> None:
    headers = {"Last-Event-ID": wrong}
    async with client.session.get(CHANGES, headers=headers) as response:
        await listening(response)
        assert "read the lists again" in (await next_gap(response))["reason"]


async def test_too_many_missed_documents_are_a_gap(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missed_events, "MOST_MISSED", 3)
    async with client.session.get(CHANGES) as response:
        seen = await frames_until(response, await make(database, "A/USDT"))
    for number in range(5):
        await make(database, f"N{number}/USDT")
    headers = {"Last-Event-ID": seen[-1]["id"]}
    async with client.session.get(CHANGES, headers=headers) as response:
        await listening(response)
        assert "more than 3 documents" in (await next_gap(response))["reason"]


async def test_a_listener_gets_the_events_that_it_asked_for(
    client: Client, database: Database
) -> None:
    await ConnectorRegistry(database).ensure("kraken", Limits(1000, 1000))
    url = "/api/v1/events?types=job,circuit&exchange_id=kraken"
    async with client.session.get(url) as response:
        await listening(response)
        await ConnectorRegistry(database).pause("kraken")
        await make(database, "A/USDT")
        job, _ = await JobQueue(database).add(JobSpec("kraken", "count"))
        name, data = await next_event(response)
        assert (name, data["id"]) == ("job", str(job.id))
    for wrong in ("types=jobs", "exchange_id=binanse", "type=job"):
        assert (await client.get(f"/api/v1/events?{wrong}")).status == 422


def test_troubles_and_gaps_are_for_listeners_of_one_exchange_too() -> None:
    wanted = listeners.EventFilter(exchange_ids=frozenset({"kraken"}))
    event = listeners.ServerEvent
    assert wanted.takes(event("trouble", "", b""))
    assert wanted.takes(event("gap", "", b""))
    assert wanted.takes(event("price", "k", b"", "kraken"))
    assert not wanted.takes(event("price", "b", b"", "binance"))
    assert not wanted.takes(event("history", "n", b""))
    assert not listeners.EventFilter(names=frozenset({"job"})).takes(event("trouble", "", b""))
