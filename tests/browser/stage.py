"""What the dashboard is looked at with: a collector of real processes, and something of everything.

The exchange is simulated. Some things that take a ban, a disk or a night to come about are written
into the database and the lake as the program would have left them.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
from bson import ObjectId

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.mongo.client import Database
from migrations import runner
from tests.browser.lake import WrittenLake
from tests.support.fleet_documents import beat
from tests.support.history_trades import added, sale
from tests.support.processes import Process, program
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NETWORK = "riemann"
LIMITS = Limits(6, 1_000)
"""Little enough that a long backfill outlasts every test."""
YEARS = 3
KEYS = {role: f"the-{role}-key" for role in ("viewer", "operator", "admin")}


@dataclass
class Stage:
    """Where everything is."""

    url: str
    exchange_url: str
    database: Database
    lake: WrittenLake
    settings: dict[str, str]
    jobs: dict[str, str] = field(default_factory=dict)
    """Ids of jobs by what they are here for."""

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """What the API answers to somebody else than the page."""
        async with (
            aiohttp.ClientSession(self.url) as session,
            session.request(method, f"/api/v1{path}", json=body, params=query) as response,
        ):
            assert response.status < 300, await response.text()
            return await response.json()


@asynccontextmanager
async def api(*arguments: str, **settings: str) -> AsyncIterator[tuple[str, Process]]:
    """An API process, and its address."""
    async with program("api", "--port", "0", *arguments, **settings) as process:
        yield await process.address(), process


@asynccontextmanager
async def stage(uri: str, name: str, root: Path) -> AsyncIterator[Stage]:
    """An API, a worker, and the simulated exchange, with work under way."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(uri, name))
        await database.read_server_clock()
        await runner.up(database)
        lake = WrittenLake(root, await database.now_ms())
        lake.write()
        listed = ("--listed", f"{datetime.now(UTC) - timedelta(days=YEARS * 365):%Y-%m-%d}")
        exchange = await stack.enter_async_context(
            program("collector.simulated", "--port", "0", *listed)
        )
        exchange_url = await exchange.address()
        settings = {
            "COLLECTOR_MONGO_URI": uri,
            "COLLECTOR_MONGO_DB": name,
            "COLLECTOR_DATA": str(root),
            "COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": exchange_url}),
            "COLLECTOR_HISTORY__NETWORKS": json.dumps([NETWORK]),
        }
        url, _ = await stack.enter_async_context(api(**settings))
        made = Stage(url, exchange_url, database, lake, settings)
        await _connect(made)
        await _trouble(made)
        only = ("--exchange", "simulated", "--exchange", f"_history/{NETWORK}")
        await stack.enter_async_context(program("workers", *only, **settings))
        await _collect(made)
        yield made


def with_keys(settings: dict[str, str]) -> dict[str, str]:
    """The same for an API that asks for a key."""
    digests = (f"{role}:{hashlib.sha256(key.encode()).hexdigest()}" for role, key in KEYS.items())
    return {**settings, "COLLECTOR_API_KEYS": ",".join(digests)}


async def _connect(made: Stage) -> None:
    """One exchange that works, one that has blocked us, and one with a budget for history."""
    registry = ConnectorRegistry(made.database)
    await registry.ensure("simulated", LIMITS)
    await made.ask("POST", "/connectors", {"exchange_id": "simulated"})
    # They would find the holes of the lake and mend them before anybody has seen them.
    scans = {"filter": {"exchange_id": "simulated", "type": ["gap_scan", "full_scan"]}}
    await made.ask("POST", "/jobs/pause", scans)
    await registry.ensure("kraken", Limits(1, 1_000))
    await made.ask("POST", "/connectors", {"exchange_id": "fxcm"})


async def _collect(made: Stage) -> None:
    now_ms = await made.database.now_ms()
    wanted = {"exchange_id": "simulated", "timeframes": ["1m"]}
    await made.ask(
        "POST", "/streams", {**wanted, "symbols": ["BTC/USDT"], "since": now_ms - 3 * DAY_MS}
    )
    long = {**wanted, "symbols": ["ETH/USDT"]}
    made.jobs["long"] = next(
        job["id"]
        for job in (await made.ask("POST", "/streams", long))["created"]
        if job["type"] == "ohlcv_backfill"
    )
    await made.ask("POST", "/jobs", {"exchange_id": "simulated", "type": "price_stream"})
    gold = added("0x1", 0, sale(5)), added("0x2", 3, sale(7)), added("0x3", 9, sale(6))
    events = {"events": [each.document() for each in gold]}
    await made.ask("POST", f"/history/{NETWORK}/events", events)

    async def stored() -> bool:
        found = await made.ask("GET", "/series", search="btc")
        pairs = await made.ask("GET", "/history/pairs")
        prices = await made.ask("GET", "/live", kind="price", symbol="BTC/USDT")
        return bool(found["items"] and pairs["items"] and prices["items"])

    await until(stored, "the first bars, trades and prices are there", 120)


async def _trouble(made: Stage) -> None:
    """A block, a job that waits for a person, and a stream of FXCM that pauses."""
    queue, now_ms = JobQueue(made.database), await made.database.now_ms()
    ban = {
        "blocked_until": now_ms + DAY_MS,
        "blocked_for_ms": DAY_MS,
        "blocked_at": now_ms - 5 * MINUTE_MS,
        "blocked_reason": "418 I'm a teapot",
    }
    await made.database.connectors.update_one({"exchange_id": "kraken"}, {"$set": ban})
    cursor = Cursor(since_ms=now_ms - now_ms % HOUR_MS)
    await queue.add(JobSpec("kraken", "ohlcv_incremental", "BTC/USD", "1h", cursor=cursor))
    failed, _ = await queue.add(
        JobSpec("kraken", "ohlcv_incremental", "GONE/USD", "1m", cursor=cursor)
    )
    await fail(made.database, str(failed.id))
    made.jobs["failed"] = str(failed.id)
    pause = {
        "active": True,
        "sleep_seconds": 45,
        "fail_count": 3,
        "last_error_type": "NetworkError",
    }
    state = beat("fxcm", diag={"backoff": {"fxcm_history": pause}})
    state["payload"] |= {"state": "RECOVERING", "last_change_ts": now_ms / 1000 - 90}
    live = {**state, "_id": "heartbeat|fxcm", "fence": 7, "seen_at": now_ms}
    await made.database.raw["live"].insert_one(live)


async def fail(database: Database, job_id: str) -> None:
    """As a worker leaves a job that the exchange will never serve."""
    error = {
        "state": "failed",
        "status": "paused",
        "stats.last_error": "kraken has no market GONE/USD",
        "stats.last_error_code": "bad_request",
        "stats.fail": 1,
    }
    await database.jobs.update_one({"_id": ObjectId(job_id)}, {"$set": error})
