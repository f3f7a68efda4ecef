"""ETag, If-Match and If-None-Match of connectors and jobs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import Changed, NotFound
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.operations import connected_jobs, job_changes
from tests.support.local_api import emptied, know_markets

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from tests.support.local_api import Client

CONNECTOR = "/api/v1/connectors/simulated"
JOB = {"exchange_id": "simulated", "type": "tickers_snapshot"}


@pytest.fixture
async def database(served_database: Database) -> Database:
    await emptied(served_database)
    return served_database


@pytest.fixture
async def client(server: Client, database: Database) -> Client:
    await ConnectorRegistry(database).ensure("simulated", Limits(1000, 1000))
    await know_markets(database)
    return server


async def tag_of(client: Client, path: str) -> str:
    return (await client.get(path)).headers["ETag"]


async def test_an_unchanged_document_is_not_sent_again(client: Client) -> None:
    job = (await client.post("/api/v1/jobs", JOB)).headers["Location"]
    for path in (CONNECTOR, job):
        tag = await tag_of(client, path)
        for known in (tag, f'"other", W/{tag}', "*"):
            again = await client.get(path, headers={"If-None-Match": known})
            assert (again.status, again.headers["ETag"], again.body) == (304, tag, "")
        assert (await client.get(path, headers={"If-None-Match": '"other"'})).status == 200


async def test_a_counter_that_moved_is_sent_and_keeps_nobody_from_a_change(
    client: Client, database: Database
) -> None:
    tag = await tag_of(client, CONNECTOR)
    async with Limiter(database) as limiter:
        await limiter.acquire("simulated", patience=1.0)
    assert (await client.get(CONNECTOR, headers={"If-None-Match": tag})).status == 200
    changed = await client("PATCH", CONNECTOR, {"rate_limit": 9}, headers={"If-Match": tag})
    assert (changed.status, changed.body["rate_limit"]) == (200, 9)
    assert changed.headers["ETag"] != tag


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"rate_limit": 7}),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/unblock", None),
        ("DELETE", "", None),
    ],
)
async def test_a_stale_tag_changes_no_connector(
    client: Client, method: str, path: str, body: Any
) -> None:
    stale = await tag_of(client, CONNECTOR)
    await client("PATCH", CONNECTOR, {"notes": "somebody else was here"})
    before = (await client.get(CONNECTOR)).body
    refused = await client(method, f"{CONNECTOR}{path}", body, headers={"If-Match": stale})
    assert (refused.status, refused.code) == (412, "changed")
    assert (await client.get(CONNECTOR)).body == before
    fresh = await tag_of(client, CONNECTOR)
    done = await client(method, f"{CONNECTOR}{path}", body, headers={"If-Match": fresh})
    assert done.status == 200, done.body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"priority": 7}),
        ("PUT", "", {"priority": 7}),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/run", None),
        ("DELETE", "", None),
    ],
)
async def test_a_stale_tag_changes_no_job(
    client: Client, method: str, path: str, body: Any
) -> None:
    job = (await client.post("/api/v1/jobs", JOB)).headers["Location"]
    stale = await tag_of(client, job)
    await client("PATCH", job, {"params": {"note": "somebody else was here"}})
    refused = await client(method, f"{job}{path}", body, headers={"If-Match": stale})
    assert (refused.status, refused.code) == (412, "changed")
    assert (await client.get(job)).body["priority"] != 7
    fresh = f'"other", {await tag_of(client, job)}'
    done = await client(method, f"{job}{path}", body, headers={"If-Match": fresh})
    assert done.status == 200, done.body
    if method != "DELETE":
        assert done.headers["ETag"]


async def test_of_two_who_saw_the_same_one_changes_it(client: Client) -> None:
    tag = await tag_of(client, CONNECTOR)
    answers = await asyncio.gather(
        *(
            client("PATCH", CONNECTOR, {"rate_limit": limit}, headers={"If-Match": tag})
            for limit in range(2, 12)
        )
    )
    assert sorted(answer.status for answer in answers) == [200] + [412] * 9


async def test_the_statement_itself_refuses_what_changed_between_reading_and_writing(
    database: Database,
) -> None:
    registry, queue = ConnectorRegistry(database), JobQueue(database)
    await registry.ensure("simulated", Limits(1000, 1000))
    seen = (await registry.get("simulated")).settings
    await registry.change_limits("simulated", {"notes": "changed"})
    with pytest.raises(Changed):
        await registry.pause("simulated", only_if=seen)
    with pytest.raises(Changed):
        await connected_jobs.remove_connector(database, "simulated", only_if=seen)
    with pytest.raises(NotFound):
        await registry.pause("kraken", only_if=seen)
    [(job, _)] = await connected_jobs.add(database, [JobSpec("simulated", "tickers_snapshot")])
    await queue.change(job.id, priority=3)
    for change in (job_changes.pause, job_changes.resume, job_changes.run, job_changes.delete):
        with pytest.raises(Changed):
            await change(database, str(job.id), only_if=job.settings)
    with pytest.raises(Changed):
        await queue.change(job.id, priority=4, only_if=job.settings)
