"""Operating a collector at work over REST, and over REST and the command line in turn.

The exchange's journal is the witness of what was really sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from bson import ObjectId

from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.store import Store
from tests.acceptance.api_process import Api, api_process
from tests.acceptance.live import LISTED_MS, STREAM, Live, live
from tests.support.bars import at, flat
from tests.support.cuttable_link import cuttable_link
from tests.support.link_address import through
from tests.support.until import until
from tests.support.worker_rounds import check_left_alone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.client import Database
    from collector.mongo.embedded import EmbeddedMongo
    from tests.support.local_api import Answer

CONNECTOR = "/api/v1/connectors/simulated"
EXCHANGE_INFO = "/api/v3/exchangeInfo"


@pytest.fixture
async def on(database: Database, mongo_uri: str, tmp_path: Path) -> AsyncIterator[Live]:
    async with live(mongo_uri, database.raw.name, tmp_path) as running:
        yield running


async def candles(on: Live, **range_of: Any) -> list[list[Any]]:
    series = {"exchange_id": "simulated", "symbol": "BTC/USDT", "timeframe": "1m"}
    answer = await on.api.get("/api/v1/candles", **series, **range_of)
    assert answer.status == 200
    rows: list[list[Any]] = answer.body["rows"]
    return rows


def problem(answer: Answer) -> tuple[int, str | None]:
    """Status and code of an answer that has to be a problem document."""
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.body["status"] == answer.status
    return answer.status, answer.code


async def test_a_series_is_collected_paused_resumed_and_deleted(
    on: Live, database: Database
) -> None:
    history, _ = await on.collecting()
    await on.gets_on(history)
    rows = await candles(on, end=LISTED_MS + 1000 * 60_000)
    truth = await on.told(f"truth?symbol=BTCUSDT&start={LISTED_MS}&end={rows[-1][0] + 1}")
    assert len(rows) == 1000
    assert [row[:6] for row in rows] == [
        list(bar)
        for bar in zip(
            *(truth[name] for name in ("ts", "open", "high", "low", "close", "volume")), strict=True
        )
    ]

    assert (await on.act(history, "pause")).body["status"] == "paused"
    cursor = (await on.put_down(history))["cursor"]
    asked = await on.old_bars_asked()
    await check_left_alone(database, {"_id": ObjectId(history)})
    assert await on.old_bars_asked() == asked
    assert (await on.job(history))["cursor"] == cursor
    assert problem(await on.act(history, "run")) == (409, "job_conflict")

    assert (await on.act(history, "resume")).body["status"] == "active"
    await on.gets_on(history)

    assert (await on.api("DELETE", f"/api/v1/jobs/{history}")).body["status"] == "deleted"

    async def let_go() -> bool:
        gone = await on.api.get("/api/v1/jobs", status="deleted")
        return [(job["id"], job["state"]) for job in gone.body["items"]] == [(history, "idle")]

    await until(let_go, "the worker lets the deleted job go")
    asked = await on.old_bars_asked()
    await check_left_alone(database, {"_id": ObjectId(history)})
    assert await on.old_bars_asked() == asked
    assert problem(await on.api.get(f"/api/v1/jobs/{history}")) == (404, "not_found")
    assert len(await candles(on, end=LISTED_MS + 1000 * 60_000)) == 1000


async def test_a_connector_is_paused_resumed_and_deleted_with_its_jobs(
    on: Live, database: Database
) -> None:
    history, _ = await on.collecting()
    await on.gets_on(history)
    assert (await on.api.post(f"{CONNECTOR}/pause")).body["status"] == "paused"
    await on.put_down(history)
    sent = len(await on.sent())
    await check_left_alone(database, {"exchange_id": "simulated"})
    assert len(await on.sent()) == sent
    assert (await on.job(history))["status"] == "active"

    assert (await on.api.post(f"{CONNECTOR}/resume")).body["status"] == "active"
    await on.gets_on(history)

    assert problem(await on.api("DELETE", CONNECTOR)) == (409, "active_jobs")
    assert (await on.api("DELETE", CONNECTOR, cascade="true")).body["status"] == "deleted"

    async def all_let_go() -> bool:
        running = await on.api.get("/api/v1/jobs", status="deleted", state="running")
        return not running.body["items"]

    await until(all_let_go, "the worker lets every job go")
    sent = len(await on.sent())
    await check_left_alone(database, {"exchange_id": "simulated"})
    assert len(await on.sent()) == sent
    assert (await on.api.get("/api/v1/jobs")).body["items"] == []


async def refreshes(on: Live) -> int:
    return len(await on.sent(EXCHANGE_INFO))


async def test_run_starts_a_job_that_is_not_due(on: Live) -> None:
    await on.collecting()
    [job] = (await on.api.get("/api/v1/jobs", type="markets_refresh")).body["items"]

    async def first_is_over() -> bool:
        return bool((await on.job(job["id"]))["stats"]["success"])

    await until(first_is_over, "the markets were loaded once")
    before = await refreshes(on)
    assert (await on.act(job["id"], "run")).status == 200

    async def asked_again() -> bool:
        return await refreshes(on) == before + 1

    await until(asked_again, "the exchange is asked for its markets again")

    async def written_down() -> bool:
        runs = (await on.api.get(f"/api/v1/jobs/{job['id']}/runs")).body["items"]
        # It may have had to wait for a token in between.
        return [run["outcome"] for run in runs].count("again") == 2

    await until(written_down, "both runs are in the job's history")


async def test_the_command_line_and_rest_move_the_same_jobs(on: Live) -> None:
    history, news = await on.collecting()
    [job] = (await on.api.get("/api/v1/jobs", type="markets_refresh")).body["items"]
    await on.gets_on(history)
    await on.command("job", "pause", history)
    paused = await on.put_down(history)
    assert paused["status"] == "paused"
    await on.command("job", "resume", history)
    await on.gets_on(history)

    before = await refreshes(on)
    await on.command("job", "run", job["id"])

    async def asked_again() -> bool:
        return await refreshes(on) == before + 1

    await until(asked_again, "the exchange is asked for its markets again")

    await on.act(news, "pause")
    assert (await on.command("job", "show", news))["status"] == "paused"
    await on.command("job", "remove", news)
    assert problem(await on.api.get(f"/api/v1/jobs/{news}")) == (404, "not_found")

    await on.api.post(f"{CONNECTOR}/pause")
    await on.put_down(history)
    await on.command("connector", "resume", "simulated")
    await on.gets_on(history)
    await on.command("connector", "remove", "simulated", "--cascade")
    assert (await on.api.get(CONNECTOR)).status == 404


async def test_what_is_wrong_is_a_problem_and_leaves_nothing_behind(on: Live) -> None:
    api = on.api
    unknown = await api.post("/api/v1/connectors", {"exchange_id": "simulatd"})
    assert problem(unknown) == (422, "unknown_exchange")
    assert "simulated" in unknown.body["errors"][0]["near"]
    early = await api.post("/api/v1/streams", STREAM)
    assert problem(early) == (422, "no_connector")
    assert (await api.get("/api/v1/connectors")).body["items"] == []

    await on.collecting()
    jobs = (await api.get("/api/v1/jobs")).body["items"]
    for body, code in (
        ({**STREAM, "symbols": ["BTC/USDT", "BTC/USD"]}, "unknown_symbol"),
        ({**STREAM, "timeframes": ["1m", "7m"]}, "unknown_timeframe"),
        ({**STREAM, "sinse": "2025-01-01"}, "invalid_request"),
    ):
        assert problem(await api.post("/api/v1/streams", body)) == (422, code)
    nobody = "0" * 24
    for method, path in (
        ("POST", f"/api/v1/jobs/{nobody}/run"),
        ("DELETE", f"/api/v1/jobs/{nobody}"),
        ("GET", "/api/v1/jobs/nonsense"),
        ("POST", "/api/v1/connectors/binance/pause"),
    ):
        assert problem(await api(method, path)) == (404, "not_found")
    after = (await api.get("/api/v1/jobs")).body["items"]
    assert [job["id"] for job in after] == [job["id"] for job in jobs]


# -- MongoDB out of reach -----------------------------------------------------------------------

HELD = Series.of("simulated", "ETH/USDT", "1m")


async def ready(api: Api) -> bool:
    return (await api.get("/readyz")).status == 200


async def test_without_mongodb_it_says_so_and_comes_back_by_itself(
    database: Database, mongo: EmbeddedMongo, tmp_path: Path
) -> None:
    Store(tmp_path).append_page(HELD, flat(0, 3), Interval(at(0), at(3)), fence=1, known_at=1)
    held = {"exchange_id": "simulated", "symbol": "ETH/USDT", "timeframe": "1m"}
    async with cuttable_link(mongo.port) as link:
        settings = {
            "COLLECTOR_MONGO_URI": through(link.port, mongo.uri),
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(tmp_path),
        }
        async with api_process(**settings) as api:
            await api.post("/api/v1/connectors", {"exchange_id": "simulated"})
            job, *_ = (await api.get("/api/v1/jobs")).body["items"]
            assert await ready(api)
            await link.cut()

            for method, path in (
                ("GET", "/api/v1/jobs"),
                ("POST", f"/api/v1/jobs/{job['id']}/run"),
                ("GET", CONNECTOR),
            ):
                away = await api(method, path)
                assert problem(away) == (503, "database_unavailable")
                assert int(away.headers["Retry-After"]) >= 1
            not_ready = await api.get("/readyz")
            assert problem(not_ready) == (503, "not_ready")
            assert int(not_ready.headers["Retry-After"]) >= 1
            assert not_ready.body["parts"]["mongodb"] == "database_unavailable"
            assert not_ready.body["parts"]["store"] == "ok"
            assert (await api.get("/healthz")).status == 200
            # Bars that are in the lake need no database.
            assert len((await api.get("/api/v1/candles", **held)).body["rows"]) == 3

            await link.mend()
            await until(lambda: ready(api), "it is ready again")
            assert (await api.post(f"/api/v1/jobs/{job['id']}/run")).status == 200
            assert "Traceback" not in api.process.said
