"""Jobs, runs, streams and markets through REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.runs import Run, RunHistory
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from tests.support.local_api import LISTED, emptied, know_markets, serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_api import Client

URL = "/api/v1/jobs"
BTC = {"exchange_id": "simulated", "symbol": "BTC/USDT", "timeframe": "1m"}


@pytest.fixture
async def database(served_database: Database) -> Database:
    await emptied(served_database)
    return served_database


@pytest.fixture
async def client(server: Client, database: Database) -> Client:
    await ConnectorRegistry(database).ensure("simulated", Limits(1000, 1000))
    await know_markets(database)
    return server


async def make(client: Client, kind: str = "ohlcv_incremental", **fields: Any) -> Any:
    answer = await client.post(URL, {**BTC, "type": kind, **fields})
    assert answer.status == 201, answer.body
    return answer.body


async def test_a_job_of_trades_is_about_a_symbol_and_no_timeframe(client: Client) -> None:
    asked = {"exchange_id": "simulated", "type": "trades_incremental", "symbol": "BTC/USDT"}
    made = await client.post(URL, {**asked, "since": 1_735_689_600_000})
    assert made.status == 201, made.body
    assert made.body["cursor"]["since_ms"] == 1_735_689_600_000
    for fields, code in (
        ({"timeframe": "1m"}, "not_allowed"),
        ({"until": 1_735_689_600_000}, "not_allowed"),
        ({"symbol": None}, "missing"),
        ({"symbol": "BTC/USDX"}, "unknown_symbol"),
    ):
        refused = await client.post(URL, {**asked, **fields})
        assert (refused.status, refused.code) == (422, code)


@pytest.mark.parametrize("kind", ["stream", "job"])
@pytest.mark.parametrize(
    ("exchange_id", "symbol", "code", "words"),
    [
        ("bitflyer", "BTC/JPY", "no_bars", "serves no bars"),
        ("binance", "BTC/USDT:USDT", "other_exchange", "are on binanceusdm"),
        ("binance", "1h", "symbol_is_timeframe", "is a timeframe"),
    ],
)
async def test_what_can_never_be_collected_is_refused(
    client: Client,
    database: Database,
    kind: str,
    exchange_id: str,
    symbol: str,
    code: str,
    words: str,
) -> None:
    await ConnectorRegistry(database).ensure(exchange_id, Limits(1000, 1000))
    asked = {"exchange_id": exchange_id}
    if kind == "stream":
        streams = {**asked, "symbols": [symbol], "timeframes": ["1m"]}
        refused = await client.post("/api/v1/streams", streams)
    else:
        job = {**asked, "type": "ohlcv_backfill", "symbol": symbol, "timeframe": "1m"}
        refused = await client.post(URL, job)
    assert (refused.status, refused.code) == (422, code)
    assert words in str(refused.body)


async def test_a_snapshot_of_tickers_is_about_the_whole_exchange(client: Client) -> None:
    made = await client.post(URL, {"exchange_id": "simulated", "type": "tickers_snapshot"})
    assert made.status == 201, made.body
    assert made.body["schedule"] == {"mode": "interval", "interval_ms": 60_000}
    refused = await client.post(URL, {**BTC, "type": "tickers_snapshot"})
    assert (refused.status, refused.code) == (422, "not_allowed")


async def test_a_job_has_the_specified_form(client: Client) -> None:
    job = await make(client, schedule={"mode": "interval", "interval_ms": 60_000})
    assert job["schedule"] == {"mode": "interval", "interval_ms": 60_000}
    assert (job["status"], job["state"], job["priority"]) == ("active", "queued", 50)
    assert set(job["cursor"]) == {"since_ms", "until_ms", "page", "last_ts", "done"}
    assert set(job["lock"]) == {"locked_by", "lock_until"}
    assert job["created_at"].endswith("Z")
    assert job.pop("notes") == []
    assert (await client.get(f"{URL}/{job['id']}")).body == job


async def test_the_same_job_again_is_the_one_there_is(client: Client) -> None:
    job = await make(client)
    await client.post(f"{URL}/{job['id']}/pause")
    twin = await client.post(URL, {**BTC, "type": "ohlcv_incremental"})
    assert (twin.status, twin.body["id"], twin.body["status"]) == (200, job["id"], "paused")


async def test_a_backfill_ends_where_it_was_made(client: Client) -> None:
    before = await client.services.now_ms()
    job = await make(client, "ohlcv_backfill", since="2025-01-01")
    assert job["cursor"]["since_ms"] == 1_735_689_600_000
    assert before - 60_000 <= job["cursor"]["until_ms"] <= await client.services.now_ms()


async def test_pause_resume_run_and_delete(client: Client) -> None:
    job = await make(client)
    at = f"{URL}/{job['id']}"
    assert (await client.post(f"{at}/pause")).body["status"] == "paused"
    assert (await client.post(f"{at}/pause")).status == 200
    assert (await client.post(f"{at}/run")).code == "job_conflict"
    assert (await client.post(f"{at}/resume")).body["state"] == "queued"
    assert (await client.post(f"{at}/run")).body["state"] == "queued"
    assert (await client("DELETE", at)).body["status"] == "deleted"
    for method, path in (("GET", at), ("DELETE", at), ("POST", f"{at}/run"), ("GET", f"{at}/runs")):
        assert (await client(method, path)).status == 404
    listed = await client.get(f"{URL}?status=deleted")
    assert [item["id"] for item in listed.body["items"]] == [job["id"]]


async def test_patch_changes_what_is_sent_and_put_replaces(
    client: Client, database: Database
) -> None:
    job = await make(client, priority=5, params={"pages": 3})
    at = f"{URL}/{job['id']}"
    daily = {"mode": "cron", "expression": "0 3 * * *"}
    patched = (await client("PATCH", at, {"schedule": daily})).body
    assert (patched["schedule"], patched["priority"]) == (daily, 5)
    assert patched["params"] == {"pages": 3}
    # It was due at once and stays so; one that waits for its time follows the new schedule.
    assert patched["next_run_at"] == job["next_run_at"]
    await database.jobs.update_one({}, {"$set": {"state": "idle"}})
    moved = (await client("PATCH", at, {"schedule": daily})).body
    assert moved["next_run_at"] > job["next_run_at"]
    put = (await client("PUT", at, {**BTC, "priority": 9})).body
    assert (put["priority"], put["params"]) == (9, {})
    assert put["schedule"]["mode"] == "bar_close"
    assert (await client("PUT", at, {"symbol": "ETH/USDT"})).code == "cannot_change"


async def test_the_symbols_of_a_price_stream_are_a_list(client: Client) -> None:
    stream = {"exchange_id": "simulated", "type": "price_stream"}
    made = await client.post(URL, {**stream, "params": {"symbols": ["BTCUSDT", "ETH/USDT"]}})
    assert made.status == 201, made.body
    assert made.body["params"] == {"symbols": ["BTC/USDT", "ETH/USDT"]}
    at = f"{URL}/{made.body['id']}"
    patched = await client("PATCH", at, {"params": {"symbols": ["ETH/USDT"]}})
    assert patched.body["params"] == {"symbols": ["ETH/USDT"]}
    for params, code in (
        ({"symbols": ["BTC/USDX"]}, "unknown_symbol"),
        ({"symbols": "BTC/USDT"}, "bad_param"),
        ({"other": ["BTC/USDT"]}, "bad_param"),
        ({"priority": ["yes"]}, "bad_param"),
    ):
        refused = await client.post(URL, {**stream, "params": params})
        assert (refused.status, refused.code) == (422, code), params


async def test_near_matches_for_symbol_and_timeframe(client: Client) -> None:
    body = {**BTC, "type": "ohlcv_incremental"}
    symbol = await client.post(URL, {**body, "symbol": "btcusdx"})
    assert (symbol.status, symbol.code) == (422, "unknown_symbol")
    assert symbol.body["errors"][0]["near"][0] == "BTC/USDT"
    timeframe = await client.post(URL, {**body, "timeframe": "6m"})
    assert (timeframe.status, timeframe.code) == (422, "unknown_timeframe")
    assert "5m" in timeframe.body["errors"][0]["near"]
    streams = {"exchange_id": "simulated", "symbols": ["BTC/USD"], "timeframes": ["1m"]}
    stream = await client.post("/api/v1/streams", streams)
    assert stream.body["errors"][0]["field"] == "symbols"


async def test_a_symbol_may_be_written_without_its_slash(client: Client) -> None:
    body = {**BTC, "type": "ohlcv_incremental", "symbol": "btcusdt"}
    made = await client.post(URL, body)
    assert (made.status, made.body["symbol"]) == (201, "BTC/USDT")
    streams = {"exchange_id": "simulated", "symbols": ["*/USDT", "BTCUSDT"], "timeframes": ["1h"]}
    answer = (await client.post("/api/v1/streams", streams)).body
    assert {job["symbol"] for job in answer["created"]} == {"BTC/USDT", "ETH/USDT", "SOL/USDT"}
    assert (answer["connector_created"], answer["symbols_known"]) == (False, True)
    nothing = await client.post("/api/v1/streams", {**streams, "symbols": ["*/EUR"]})
    assert (nothing.status, nothing.code) == (422, "unknown_symbol")


async def test_a_market_that_is_written_like_a_pattern_is_that_market(
    client: Client, database: Database
) -> None:
    market = await database.markets.find_one({"symbol": "SOL/USDT"})
    assert market is not None
    del market["_id"]
    await database.raw["markets"].insert_one({**market, "symbol": "[S]OL/USDT"})
    streams = {"exchange_id": "simulated", "symbols": ["[S]OL/USDT"], "timeframes": ["1h"]}
    added = await client.post("/api/v1/streams", streams)
    assert {job["symbol"] for job in added.body["created"]} == {"[S]OL/USDT"}
    await make(client, symbol="[S]OL/USDT")
    body = {**BTC, "type": "ohlcv_incremental", "symbol": "[ES]*/USDT"}
    refused = await client.post(URL, body)
    assert (refused.status, refused.code) == (422, "unknown_symbol")
    assert "a job is about one market" in str(refused.body)


async def test_the_cost_of_a_pattern_is_told_before_it_is_added(client: Client) -> None:
    now_ms = await client.services.now_ms()
    day = {"exchange_id": "simulated", "timeframes": ["1m"], "since": now_ms - 86_400_000}
    cost = (await client.post("/api/v1/streams/estimate", {**day, "symbols": ["*/USDT"]})).body
    assert cost["symbols"] == ["BTC/USDT", "ETH/USDT", "SOL/USDT"]
    assert (cost["series"], cost["existing"], cost["requests"]) == (3, 0, 3 * 2)
    assert (await client.get(URL)).body["items"] == []


async def test_streams_may_make_their_connector(client: Client, database: Database) -> None:
    await emptied(database)
    body = {"exchange_id": "simulated", "symbols": ["BTC/USDT"], "timeframes": ["1m"]}
    assert (await client.post("/api/v1/streams", body)).code == "no_connector"
    answer = await client.post("/api/v1/streams", {**body, "make_connector": True})
    assert (answer.status, answer.body["connector_created"]) == (201, True)
    assert answer.body["connector"]["exchange_id"] == "simulated"
    assert answer.body["symbols_known"] is False


async def test_jobs_are_found_by_the_beginning_of_an_id(client: Client) -> None:
    job = await make(client)
    found = await client.get(URL, params={"id_prefix": job["id"][:20]})
    assert [each["id"] for each in found.body["items"]] == [job["id"]]
    both = await client.get(URL, params={"id_prefix": job["id"], "symbol": "BTC/USDT"})
    assert (both.status, both.body["errors"][0]["field"]) == (422, "id_prefix")


async def test_ten_thousand_jobs_are_listed_page_by_page(
    client: Client, database: Database
) -> None:
    job, _ = await JobQueue(database).add(JobSpec("simulated", "count"))
    document = {name: value for name, value in job.document.items() if name != "_id"}
    await database.jobs.insert_many(
        [{**document, "unique_key": f"k{n}", "symbol": f"S{n}"} for n in range(10_000)]
    )
    seen: list[str] = []
    cursor = ""
    while True:
        page = await client.get(f"{URL}?exchange_id=simulated&type=count&limit=1000{cursor}")
        seen += [item["id"] for item in page.body["items"]]
        if page.body["next_cursor"] is None:
            break
        cursor = f"&cursor={page.body['next_cursor']}"
    assert len(seen) == len(set(seen)) == 10_001
    assert seen == sorted(seen)
    newest = await client.get(f"{URL}?order=newest&limit=1")
    assert newest.body["items"][0]["id"] == seen[-1]


async def test_filters_choose_jobs(client: Client) -> None:
    first = await make(client)
    await make(client, "ohlcv_backfill")
    await client.post(f"{URL}/{first['id']}/pause")
    for query, count in (
        ("type=ohlcv_backfill", 1),
        ("status=paused", 1),
        ("state=queued", 1),
        ("symbol=BTC/USDT&timeframe=1m", 2),
        ("exchange_id=binance", 0),
    ):
        listed = await client.get(f"{URL}?{query}")
        assert len(listed.body["items"]) == count, query


async def test_runs_are_listed_newest_first(client: Client, database: Database) -> None:
    made = await make(client)
    job = await JobQueue(database).get(made["id"])
    history = RunHistory(database)
    for start in (1_000, 2_000, 3_000):
        history.record(Run(job, "ann", 1, start, start + 10, "again", pages=1, bars=2))
    await history.flush()
    first = (await client.get(f"{URL}/{made['id']}/runs?limit=2")).body
    assert [run["started_at"] for run in first["items"]] == [3_000, 2_000]
    assert (first["items"][0]["duration_ms"], first["items"][0]["bars"]) == (10, 2)
    rest = (await client.get(f"{URL}/{made['id']}/runs?cursor={first['next_cursor']}")).body
    assert [run["started_at"] for run in rest["items"]] == [1_000]
    assert rest["next_cursor"] is None


async def test_streams_make_what_is_missing(client: Client) -> None:
    body = {
        "exchange_id": "simulated",
        "symbols": ["BTC/USDT", "ETH/USDT", "BTC/USDT"],
        "timeframes": ["1m", "1h"],
        "since": "2025-01-01",
    }
    await make(client)
    made = await client.post("/api/v1/streams", body)
    assert (made.status, len(made.body["created"]), len(made.body["existing"])) == (201, 7, 1)
    again = await client.post("/api/v1/streams", body)
    assert (again.status, len(again.body["created"]), len(again.body["existing"])) == (200, 0, 8)


async def test_markets_are_listed_by_symbol(client: Client) -> None:
    first = (await client.get("/api/v1/markets?exchange_id=simulated&limit=2")).body
    assert [item["symbol"] for item in first["items"]] == sorted(LISTED)[:2]
    assert first["items"][0]["timeframes"] == ["1m", "5m", "1h", "1d"]
    params = {"exchange_id": "simulated", "cursor": first["next_cursor"]}
    rest = (await client.get("/api/v1/markets", params=params)).body
    assert [item["symbol"] for item in rest["items"]] == sorted(LISTED)[2:]
    assert (await client.get("/api/v1/markets?exchange_id=nosuch")).code == "unknown_exchange"


async def test_markets_not_known_yet_are_loaded_through_the_limiter(
    database: Database, tmp_path: Path
) -> None:
    await emptied(database)
    registry = ConnectorRegistry(database)
    await registry.ensure("simulated", Limits(1000, 1000))
    async with (
        SimulatedExchange(listed=listings(2, listed_ms=1_700_000_040_000)) as exchange,
        serving(database, tmp_path, urls={"simulated": exchange.url}) as client,
    ):
        await make(client)
        granted = (await registry.get("simulated")).document["granted_total"]
        assert granted == len(exchange.journal.since()) > 0


async def test_markets_that_cannot_be_loaded_are_left_to_a_job(
    database: Database, tmp_path: Path
) -> None:
    await emptied(database)
    registry = ConnectorRegistry(database)
    await registry.ensure("simulated", Limits(1000, 1000))
    await registry.pause("simulated")
    async with serving(database, tmp_path) as client:
        answer = await client.post(URL, {**BTC, "type": "ohlcv_incremental"})
    assert (answer.status, answer.code) == (503, "markets_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    jobs = await JobQueue(database).find({"exchange_id": "simulated"})
    assert [(job.type, job.state.value) for job in jobs] == [("markets_refresh", "queued")]


async def test_a_job_needs_a_connector(client: Client) -> None:
    answer = await client.post(URL, {**BTC, "exchange_id": "binance", "type": "ohlcv_backfill"})
    assert (answer.status, answer.code) == (422, "no_connector")


async def test_an_earlier_since_extends_a_backfill_and_a_later_one_changes_nothing(
    client: Client,
) -> None:
    made = await make(client, "ohlcv_backfill", since="2025-03-01")
    assert made["requested_since"] == made["cursor"]["since_ms"]
    asked = {**BTC, "type": "ohlcv_backfill"}
    earlier = await client.post(URL, {**asked, "since": "2025-01-01"})
    assert (earlier.status, earlier.body["id"]) == (200, made["id"])
    assert earlier.body["requested_since"] == 1_735_689_600_000
    later = await client.post(URL, {**asked, "since": "2025-02-01"})
    assert "earlier history is fetched" in earlier.body.pop("notes")[0]
    assert "a later one changes nothing" in later.body.pop("notes")[0]
    assert later.body == earlier.body

    streams = {"exchange_id": "simulated", "symbols": ["BTC/USDT"], "timeframes": ["1m"]}
    answer = await client.post("/api/v1/streams", {**streams, "since": "2025-02-01"})
    assert answer.body["notes"] == [
        "simulated BTC/USDT 1m: its history begins at 2025-01-01 already;"
        " a later one changes nothing"
    ]
    answer = await client.post("/api/v1/streams", {**streams, "since": "2024-06-01"})
    assert "earlier history is fetched, from 2024-06-01 on" in answer.body["notes"][0]
    assert (await client.post("/api/v1/streams", streams)).body["notes"] == []
