"""Jobs by state, lag and budgets of every exchange, as the overview shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

MINUTE = 60_000
CENSUS = "/api/v1/census"


async def test_jobs_are_counted_by_the_words_of_filters(database: Database, tmp_path: Path) -> None:
    queue = JobQueue(database)
    specs = [JobSpec("binance", "count", symbol=f"C{n}/USDT", timeframe="1m") for n in range(4)]
    jobs = [(await queue.add(spec))[0] for spec in specs]
    await queue.pause(jobs[0].id)
    done = {"state": "success", "status": "paused"}
    await database.jobs.update_one({"_id": jobs[1].id}, {"$set": done})
    failed = {"state": "failed", "status": "paused"}
    await database.jobs.update_one({"_id": jobs[2].id}, {"$set": failed})
    await queue.add(JobSpec("_history/riemann", "history_apply"))
    async with serving(database, tmp_path) as client:
        body = (await client.get(CENSUS)).body
        found = {each["exchange_id"] or each["network"]: each["jobs"] for each in body["items"]}
        counts = {"paused": 1, "done": 1, "failed": 1, "queued": 1}
        assert found == {"binance": counts, "riemann": {"queued": 1}}
        for state, count in counts.items():
            asked = {"exchange_id": "binance", "state": state}
            listed = (await client.get("/api/v1/jobs", params=asked)).body["items"]
            assert len(listed) == count, f"a list of {state} jobs is what was counted"


async def test_lag_is_that_of_the_series_furthest_behind(
    database: Database, tmp_path: Path
) -> None:
    now_ms = await database.now_ms()
    for symbol, timeframe, behind in (("A/B", "1m", 2), ("C/D", "1m", 7), ("A/B", "1h", 60)):
        since = now_ms - now_ms % MINUTE - behind * MINUTE
        cursor = Cursor(since_ms=since - since % (60 * MINUTE if timeframe == "1h" else MINUTE))
        spec = JobSpec("binance", "ohlcv_incremental", symbol, timeframe, cursor=cursor)
        await JobQueue(database).add(spec)
    async with serving(database, tmp_path) as client:
        [item] = (await client.get(CENSUS)).body["items"]
    minutes, hours = item["lag"]
    assert (minutes["timeframe"], hours["timeframe"]) == ("1m", "1h")
    assert minutes["bars"] in (7, 8), "a minute may have ended since"
    assert hours["bars"] in (1, 2)


async def test_silent_series_are_counted_beside_the_lag(database: Database, tmp_path: Path) -> None:
    now_ms = await database.now_ms()
    since = now_ms - now_ms % MINUTE - 30 * MINUTE
    to_ms = since + 28 * MINUTE
    silences = [[since, to_ms, 1, now_ms, now_ms, since, to_ms, now_ms, 0]]
    cursor = Cursor(since_ms=since)
    spec = JobSpec(
        "binance", "ohlcv_incremental", "A/B", "1m", cursor=cursor, progress={"silences": silences}
    )
    await JobQueue(database).add(spec)
    await ConnectorRegistry(database).ensure("binance", Limits(100, MINUTE))
    async with serving(database, tmp_path) as client:
        [item] = (await client.get(CENSUS)).body["items"]
        status = (await client.get("/api/v1/status")).body
        metrics = (await client.get("/metrics")).body
    [lag] = item["lag"]
    assert (lag["bars"] <= 1, lag["unconfirmed"]) == (True, 1)
    assert status["connectors"][0]["lag"]["unconfirmed"] == 1
    labels = '{exchange="binance",timeframe="1m"}'
    assert f"collector_unconfirmed_series{labels} 1.0" in metrics


async def test_the_fullest_window_comes_first(database: Database, tmp_path: Path) -> None:
    weight = Window("weight", 10, MINUTE)
    limits = Limits(100, MINUTE, windows=(weight,))
    await ConnectorRegistry(database).ensure("binance", limits)
    now_ms = await database.now_ms()
    used = [{"t": now_ms, "cur": 3}, {"t": now_ms, "cur": 6}]
    await database.connectors.update_one({}, {"$set": {"limiter": {"windows": used}}})
    async with serving(database, tmp_path) as client:
        first, second = (await client.get("/api/v1/connectors/binance")).body["budgets"]
    assert (first["unit"], first["used"], first["limit"]) == ("weight", 6, 10)
    assert (second["unit"], second["used"], second["limit"]) == ("requests", 3, 100)
    assert first["resets_at"] > now_ms
