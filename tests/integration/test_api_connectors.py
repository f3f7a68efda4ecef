"""Connectors through REST."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from collector.connectors.limiter import Limiter
from collector.jobs import types
from tests.support.local_api import emptied, know_markets

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from tests.support.local_api import Client

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


async def test_the_history_budget_of_fxcm_is_shown_and_changed(
    client: Client, database: Database
) -> None:
    made = await client.post(URL, {"exchange_id": "fxcm"})
    assert made.status == 201
    assert made.body["spacing"] == {
        "min_interval_ms": {"1m": 2500, "5m": 7000},
        "priority_targets": ["EURUSD:1m", "EURUSD:5m", "XAUUSD:1m", "XAUUSD:5m"],
        "min_interval_threshold": 0.45,
        "warn_threshold": 0.7,
        "critical_threshold": 0.9,
    }
    budget = made.body["history_budget"]
    assert (budget["limit_60s"], budget["limit_3600s"], budget["calls_60s"]) == (120, 2400, 0)
    assert (budget["throttle_state"], budget["next_slot_seconds"]) == ("ok", 0)
    spacing = {"min_interval_ms": {"1m": 9000}, "priority_targets": ["GBP/USD:1m"]}
    changes = {"spacing": spacing, "reserve_threshold": 0.8, "priority_reserve": 2}
    changed = await client("PATCH", f"{URL}/fxcm", changes)
    assert changed.status == 200
    assert changed.body["spacing"]["min_interval_ms"] == {"1m": 9000}
    assert changed.body["spacing"]["priority_targets"] == ["GBPUSD:1m"]
    assert (changed.body["reserve_threshold"], changed.body["priority_reserve"]) == (0.8, 2)
    async with Limiter(database) as limiter:
        await limiter.acquire("fxcm", key="GBPUSD:1m")
    shown = (await client.get(f"{URL}/fxcm")).body["history_budget"]
    assert (shown["calls_60s"], shown["priority"]["calls_60s"]) == (1, 1)
    whole = await client("PATCH", f"{URL}/fxcm", {"reserve_threshold": 1})
    assert (whole.status, whole.body["reserve_threshold"]) == (200, 1.0)
    for wrong in (
        {"min_interval_ms": {"soon": 1}},
        {"priority_targets": ["GBPUSD"]},
        {"warn_threshold": False},
        {"warn": 1},
    ):
        assert (await client("PATCH", f"{URL}/fxcm", {"spacing": wrong})).status == 422
    off = await client("PATCH", f"{URL}/fxcm", {"spacing": None})
    assert (off.body["spacing"], off.body["history_budget"]) == (None, None)


async def test_a_block_is_lifted_by_whoever_may(client: Client) -> None:
    await client.post(URL, {"exchange_id": "simulated"})
    await client.services.registry.block("simulated", "418", for_ms=60_000)
    assert (await client.get(f"{URL}/simulated")).body["blocked_reason"] == "418"
    for _ in range(2):
        lifted = await client.post(f"{URL}/simulated/unblock")
        assert (lifted.status, lifted.body["blocked_until"]) == (200, None)
    assert (await client.post(f"{URL}/kraken/unblock")).status == 404


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
    assert (
        await client.post(f"{URL}/simulated/pause", {"until": 1_735_689_600})
    ).code == "in_the_past"


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


async def test_a_connector_that_goes_amid_requests_leaves_no_active_job(
    client: Client, database: Database
) -> None:
    await know_markets(database)
    await client.post(URL, {"exchange_id": "simulated"})
    job = {"exchange_id": "simulated", "type": "ohlcv_backfill", "symbol": "BTC/USDT"}
    stream = {"exchange_id": "simulated", "symbols": ["ETH/USDT", "SOL/USDT"]}
    requests = [
        *(client.post("/api/v1/jobs", {**job, "timeframe": name}) for name in ("1m", "5m", "1h")),
        client("DELETE", f"{URL}/simulated?cascade=true"),
        *(client.post("/api/v1/streams", {**stream, "timeframes": [t]}) for t in ("1m", "1d")),
        client.post(URL, {"exchange_id": "simulated"}),
    ]
    answers = await asyncio.gather(*requests)
    assert {answer.status for answer in answers} <= {200, 201, 409, 422}
    gone = (await client.get(f"{URL}/simulated")).status == 404
    assert not gone or await database.jobs.count_documents({"status": "active"}) == 0


async def test_its_own_duties_do_not_keep_a_connector(client: Client, database: Database) -> None:
    await client.post(URL, {"exchange_id": "simulated"})
    assert await database.jobs.count_documents({"status": "active"}) == len(types.duties())
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
