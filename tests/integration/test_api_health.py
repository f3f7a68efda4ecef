"""Health, readiness, metrics, outages, and how operations are described."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from api.app import all_routes
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.history.terms import HistoryTerms
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.keys import Role
from collector.mongo.client import Database
from collector.operations.bulk_jobs import VERBS as BULK_VERBS
from migrations import runner
from tests.support.free_ports import free_port
from tests.support.history_trades import added, sale
from tests.support.local_api import serving
from tests.support.mongo_profile import profiled

ROOT = Path(__file__).parents[2]


async def test_all_is_well(database: Database, tmp_path: Path) -> None:
    async with serving(database, tmp_path) as client:
        assert (await client.get("/healthz")).body == {"status": "ok"}
        ready = await client.get("/readyz")
        assert ready.status == 200
        assert ready.body["parts"] == {"mongodb": "ok", "schema": "ok", "store": "ok"}


async def test_another_schema_is_not_ready(empty_database: Database, tmp_path: Path) -> None:
    async with serving(empty_database, tmp_path) as client:
        answer = await client.get("/readyz")
        assert (answer.status, answer.code) == (503, "not_ready")
        assert answer.body["parts"]["schema"] == "schema_mismatch"
        assert answer.body["parts"]["mongodb"] == "ok"
        assert [error["field"] for error in answer.body["errors"]] == ["schema"]


async def test_a_lake_that_cannot_be_read_is_not_ready(database: Database, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.write_text("a file where a folder should be")
    async with serving(database, place) as client:
        answer = await client.get("/readyz")
        assert (answer.status, answer.body["parts"]["store"]) == (503, "store_unavailable")
        assert str(tmp_path) not in str(answer.body)


async def test_without_mongodb_every_route_says_503_and_when_to_come_back(tmp_path: Path) -> None:
    body = {"exchange_id": "simulated"}
    job = {**body, "type": "ohlcv_backfill", "symbol": "BTC/USDT", "timeframe": "1m"}
    bodies = {
        **{f"/api/v1/jobs/{verb}": {"filter": {"all": True}} for verb in BULK_VERBS},
        "/api/v1/connectors": body,
        "/api/v1/jobs": job,
        **{
            f"/api/v1/streams{more}": {**body, "symbols": ["BTC/USDT"], "timeframes": ["1m"]}
            for more in ("", "/estimate")
        },
        "/api/v1/history/{network}/events": {"events": [added("0x1", 0, sale(5)).document()]},
    }
    needs_none = {"/healthz", "/readyz", "/openapi.json"}
    # What is in the files can be read without the database.
    needs_none |= {"/api/v1/coverage", "/api/v1/reports/missing", "/api/v1/reports/validation"}
    needs_none |= {"/api/v1/quarantine", "/api/v1/series", "/api/v1/history/pairs"}
    # What a key may do, and which exchanges there are, is known to the process.
    needs_none |= {"/api/v1/me", "/api/v1/exchanges"}
    # What is wrong has to be known most of all when MongoDB is away.
    needs_none |= {"/metrics", "/api/v1/troubles"}
    needs_none |= {f"/api/v1/history/{name}" for name in ("market-rate", "volume", "candles")}
    exchange = "?exchange_id=simulated"
    queries = {
        "/api/v1/markets": exchange,
        "/api/v1/candles": f"{exchange}&symbol=BTC/USDT&timeframe=1m",
        "/api/v1/trades": f"{exchange}&symbol=BTC/USDT",
    }
    async with (
        Database(f"mongodb://127.0.0.1:{free_port()}", "gone") as database,
        serving(database, tmp_path, history=HistoryTerms(("ton",))) as client,
    ):

        async def check(path: str, method: str) -> None:
            url = path.format(exchange_id="simulated", job_id="0" * 24, network="ton")
            url += queries.get(path, "")
            sent = bodies.get(path) if method == "POST" else {} if method[0] == "P" else None
            answer = await client(method, url, sent)
            assert (answer.status, answer.code) == (503, "database_unavailable"), (method, path)
            assert int(answer.headers["Retry-After"]) >= 1

        async with asyncio.TaskGroup() as group:
            for route in all_routes():
                if route.path not in needs_none:
                    group.create_task(check(route.path, route.method))
            ready = group.create_task(client.get("/readyz"))
            alive = group.create_task(client.get("/healthz"))
            scraped = group.create_task(client.get("/metrics"))
            troubles = group.create_task(client.get("/api/v1/troubles"))
        assert alive.result().status == 200
        assert ready.result().status == 503
        assert ready.result().body["parts"]["mongodb"] == "database_unavailable"
        assert ready.result().body["parts"]["store"] == "ok"
    assert scraped.result().status == 200
    lines = scraped.result().body.splitlines()
    assert "collector_mongodb_up 0.0" in lines
    assert 'collector_trouble{exchange="",kind="mongodb"} 1.0' in lines
    assert any(line.startswith("collector_database_outages_total") for line in lines)
    assert troubles.result().status == 200
    [trouble] = troubles.result().body["items"]
    assert (trouble["kind"], trouble["exchange_id"], trouble["jobs"]) == ("mongodb", None, 0)


async def test_metrics_tell_what_the_database_knows(database: Database, tmp_path: Path) -> None:
    registry, queue = ConnectorRegistry(database), JobQueue(database)
    await registry.ensure("simulated", Limits(100, 60_000))
    await registry.block("simulated", "429", for_ms=60_000)
    await registry.ensure("binance", Limits(50, 60_000))
    async with Limiter(database) as limiter:
        for _ in range(3):
            await limiter.acquire("binance")
    now_ms = database.server_clock.now_ms()
    behind = Cursor(since_ms=now_ms - 5 * 60_000 - 1_000)
    await queue.add(JobSpec("binance", "ohlcv_incremental", "BTC/USDT", "1m", cursor=behind))
    async with serving(database, tmp_path) as client:
        answer = await client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    families = list(text_string_to_metric_families(answer.body))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    assert found["collector_rate_limit_usage", "binance"] == 3
    assert found["collector_rate_limit_limit", "binance"] == 50
    assert found["collector_rate_limit_reset_at", "binance"] > now_ms / 1000
    assert found["collector_jobs", "binance", "queued"] == 1
    assert found["collector_jobs", "binance", "running"] == 0
    assert found["collector_banned_until", "binance"] == 0
    assert found["collector_banned_until", "simulated"] > now_ms / 1000
    assert found["collector_lag_bars", "binance", "1m"] == 5


async def test_due_jobs_are_counted_where_a_worker_could_take_them(
    database: Database, tmp_path: Path
) -> None:
    registry, queue = ConnectorRegistry(database), JobQueue(database)
    for exchange_id in ("binance", "kraken", "simulated"):
        await registry.ensure(exchange_id, Limits(50, 60_000))
        for symbol in ("BTC/USDT", "ETH/USDT", "XRP/USDT"):
            await queue.add(JobSpec(exchange_id, "ohlcv_backfill", symbol, "1m"))
    await registry.pause("kraken")
    taken = await Leasing(database, "a worker").claim("simulated", 2)
    assert len(taken) == 2
    async with serving(database, tmp_path) as client:
        figures = (await client.get("/metrics")).body
    for exchange_id, jobs in (("binance", 3.0), ("kraken", 0.0), ("simulated", 1.0)):
        assert f'collector_jobs_due{{exchange="{exchange_id}"}} {jobs}' in figures


async def test_a_scrape_reads_one_job_an_exchange(empty_database: Database, tmp_path: Path) -> None:
    await runner.up(empty_database)
    await ConnectorRegistry(empty_database).ensure("binance", Limits(50, 60_000))
    queue, now_ms = JobQueue(empty_database), await empty_database.now_ms()
    fresh = Cursor(since_ms=now_ms - now_ms % 60_000)
    for number in range(40):
        symbol = f"C{number}/USDT"
        await queue.add(JobSpec("binance", "ohlcv_incremental", symbol, "1m", cursor=fresh))
    # Those that are due would be counted, 1000 at most.
    await empty_database.jobs.update_many({}, {"$set": {"next_run_at": now_ms + 600_000}})
    async with serving(empty_database, tmp_path) as client:
        first = await client.get("/metrics")
        async with profiled(empty_database) as seen:
            second = await client.get("/metrics")
    assert 'collector_jobs{exchange="binance",state="queued"} 40.0' in first.body
    assert 'collector_jobs{exchange="binance",state="queued"} 40.0' in second.body
    assert 'collector_lag_bars{exchange="binance",timeframe="1m"}' in second.body
    assert sum(each["docsExamined"] for each in seen) <= 1
    assert sum(each["keysExamined"] for each in seen) <= 12, "counted a moment ago"


async def test_every_operation_is_described(database: Database, tmp_path: Path) -> None:
    async with serving(database, tmp_path) as client:
        document = (await client.get("/openapi.json")).body
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    identities = {operation["operationId"] for operation in operations}
    assert len(identities) == len(operations)
    for operation in operations:
        assert operation["summary"]
        assert operation["tags"]
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]
            for link in response.get("links", {}).values():
                assert link["operationId"] in identities
            if status == "200" and "application/json" in response.get("content", {}):
                assert response["content"]["application/json"]["schema"]
        if "requestBody" in operation:
            assert "413" in operation["responses"]
    bodies = {"NewConnector", "NewJob", "NewStreams", "ConnectorChange", "JobChange", "Pause"}
    for name in bodies:
        schema = document["components"]["schemas"][name]
        assert schema["examples"]
        assert schema["additionalProperties"] is False
    roles = {operation.get("x-role") for operation in operations}
    assert roles == {None, *(role.word for role in Role if role > Role.ANYONE)}
