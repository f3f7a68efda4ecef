"""Connectors through REST."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from collector.jobs.job import EXCHANGE_DUTIES
from tests.integration.serving import emptied, know_markets

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from tests.integration.serving import Client

URL = "/api/v1/connectors"


@pytest.fixture
async def database(served_database: Database) -> Database:
    await emptied(served_database)
    return served_database


@pytest.fixture
async def client(server: Client, database: Database) -> Client:
    """On a database that was emptied."""
    return server


async def test_a_connector_is_made_once_and_shown(client: Client) -> None:
    made = await client.post(URL, {"exchange_id": "simulated", "rate_limit": 7, "notes": "mine"})
    again = await client.post(URL, {"exchange_id": "simulated", "rate_limit": 9})
    shown = await client.get(f"{URL}/simulated")
    assert (made.status, again.status, shown.status) == (201, 200, 200)
    assert made.body["rate_limit"] == again.body["rate_limit"] == shown.body["rate_limit"] == 7
    assert shown.body["notes"] == "mine"
    assert shown.body["creation_date"].endswith("Z")
    listed = await client.get(URL)
    assert [item["exchange_id"] for item in listed.body["items"]] == ["simulated"]
    assert listed.body["next_cursor"] is None


async def test_200_concurrent_posts_make_one_connector_and_one_job(
    client: Client, database: Database
) -> None:
    await know_markets(database)
    posts = [client.post(URL, {"exchange_id": "simulated"}) for _ in range(200)]
    statuses = Counter(answer.status for answer in await asyncio.gather(*posts))
    assert statuses == {201: 1, 200: 199}
    job = {
        "exchange_id": "simulated",
        "type": "ohlcv_incremental",
        "symbol": "BTC/USDT",
        "timeframe": "1h",
        "schedule": {"mode": "interval", "interval_ms": 3_600_000},
    }
    answers = await asyncio.gather(*(client.post("/api/v1/jobs", job) for _ in range(200)))
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 199}
    assert len({answer.body["id"] for answer in answers}) == 1
    assert await database.connectors.count_documents({}) == 1
    assert await database.jobs.count_documents({"type": "ohlcv_incremental"}) == 1


async def test_an_unknown_exchange_names_near_matches(client: Client) -> None:
    answer = await client.post(URL, {"exchange_id": "binanse"})
    assert (answer.status, answer.code) == (422, "unknown_exchange")
    assert "binance" in answer.body["errors"][0]["near"]
    assert answer.body["errors"][0]["field"] == "exchange_id"
    assert answer.headers["Content-Type"] == "application/problem+json"


async def test_limits_change_and_what_is_left_out_stays(client: Client) -> None:
    await client.post(URL, {"exchange_id": "simulated", "rate_limit": 7, "notes": "mine"})
    windows = [{"unit": "weight", "limit": 10, "period_ms": 1000}]
    changed = await client("PATCH", f"{URL}/simulated", {"rate_limit": 8, "windows": windows})
    assert changed.status == 200
    assert (changed.body["rate_limit"], changed.body["notes"]) == (8, "mine")
    assert changed.body["windows"][0]["limit"] == 10
    cleared = await client("PATCH", f"{URL}/simulated", {"notes": None})
    assert cleared.body["notes"] is None
    assert (await client("PATCH", f"{URL}/simulated", {"rate_limit": None})).status == 422


async def test_a_pause_ends_by_itself_or_by_a_resume(client: Client, database: Database) -> None:
    await client.post(URL, {"exchange_id": "simulated"})
    paused = await client.post(f"{URL}/simulated/pause")
    assert (paused.body["status"], paused.body["paused_until"]) == ("paused", None)
    assert (await client.post(f"{URL}/simulated/resume")).body["status"] == "active"
    until = await client.services.now_ms() + 60_000
    paused = await client.post(f"{URL}/simulated/pause", {"until": until})
    assert paused.body["paused_until"] == until
    past = {"$set": {"paused_until": 1}}
    await database.connectors.update_one({"exchange_id": "simulated"}, past)
    assert (await client.get(f"{URL}/simulated")).body["status"] == "active"
    assert (await client.post(f"{URL}/simulated/pause", {"until": 1})).code == "in_the_past"


async def test_active_jobs_keep_a_connector_unless_it_cascades(
    client: Client, database: Database
) -> None:
    await know_markets(database)
    await client.post(URL, {"exchange_id": "simulated"})
    job = {"exchange_id": "simulated", "type": "ohlcv_incremental"}
    made = await client.post("/api/v1/jobs", {**job, "symbol": "BTC/USDT", "timeframe": "1m"})
    refused = await client("DELETE", f"{URL}/simulated")
    assert (refused.status, refused.code) == (409, "active_jobs")
    deleted = await client("DELETE", f"{URL}/simulated?cascade=true")
    assert (deleted.status, deleted.body["status"]) == (200, "deleted")
    assert (await client.get(f"{URL}/simulated")).status == 404
    assert (await client.get(f"/api/v1/jobs/{made.body['id']}")).status == 404
    assert (await client.post(URL, {"exchange_id": "simulated"})).status == 201


async def test_its_own_duties_do_not_keep_a_connector(client: Client, database: Database) -> None:
    await client.post(URL, {"exchange_id": "simulated"})
    assert await database.jobs.count_documents({"status": "active"}) == len(EXCHANGE_DUTIES)
    assert (await client("DELETE", f"{URL}/simulated")).status == 200
    assert await database.jobs.count_documents({"status": "active"}) == 0


async def test_connectors_are_listed_page_by_page(client: Client) -> None:
    for exchange_id in ("binance", "bybit", "simulated"):
        await client.post(URL, {"exchange_id": exchange_id})
    await client.post(f"{URL}/bybit/pause")
    first = await client.get(f"{URL}?limit=2")
    rest = await client.get(f"{URL}?limit=2&cursor={first.body['next_cursor']}")
    found = [item["exchange_id"] for item in first.body["items"] + rest.body["items"]]
    assert found == ["binance", "bybit", "simulated"]
    assert rest.body["next_cursor"] is None
    paused = await client.get(f"{URL}?status=paused")
    assert [item["exchange_id"] for item in paused.body["items"]] == ["bybit"]
