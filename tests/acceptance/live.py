"""A whole collector: the API, a worker and the simulated exchange, each a process of its own."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.acceptance.api_process import Api, api_process
from tests.support.processes import Process, program
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.local_api import Answer

DAY_MS = 86_400_000
LISTED = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=700)
"""Long enough ago that a backfill at BUDGET outlasts every test."""
LISTED_MS = round(LISTED.timestamp() * 1000)
BUDGET = {"rate_limit": 15, "rate_limit_period_ms": 1000}
STREAM = {"exchange_id": "simulated", "symbols": ["BTC/USDT"], "timeframes": ["1m"]}


@dataclass(frozen=True)
class Live:
    """What a test may do to it, and what it may see."""

    api: Api
    worker: Process
    exchange_url: str
    settings: dict[str, str]

    async def collecting(self) -> tuple[str, str]:
        """A connector and a stream, made over REST; the ids of its history and its news job."""
        made = await self.api.post("/api/v1/connectors", {"exchange_id": "simulated", **BUDGET})
        assert made.status == 201
        stream = await self.api.post("/api/v1/streams", STREAM)
        assert (stream.status, stream.body["existing"]) == (201, [])
        by_type = {job["type"]: job["id"] for job in stream.body["created"]}
        return by_type["ohlcv_backfill"], by_type["ohlcv_incremental"]

    async def job(self, job_id: str) -> dict[str, Any]:
        answer = await self.api.get(f"/api/v1/jobs/{job_id}")
        assert answer.status == 200
        found: dict[str, Any] = answer.body
        return found

    async def act(self, job_id: str, verb: str) -> Answer:
        return await self.api.post(f"/api/v1/jobs/{job_id}/{verb}")

    async def gets_on(self, job_id: str, bars: int = 2_000) -> None:
        """Until the job's cursor is further than it is now."""
        before = (await self.job(job_id))["cursor"]["since_ms"]

        async def further() -> bool:
            since_ms = (await self.job(job_id))["cursor"]["since_ms"]
            return bool(since_ms >= max(before, LISTED_MS) + bars * 60_000)

        await until(further, "the job gets on")

    async def put_down(self, job_id: str) -> dict[str, Any]:
        """The job, once no worker has it."""

        async def at_rest() -> bool:
            return (await self.job(job_id))["state"] != "running"

        await until(at_rest, "the worker puts the job down")
        return await self.job(job_id)

    async def told(self, path: str) -> Any:
        """An answer of the exchange's back door."""
        url = f"{self.exchange_url}/sim/{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.json()

    async def sent(self, path: str = "") -> list[dict[str, Any]]:
        """The requests that the exchange saw, or those of one path."""
        entries = (await self.told("journal"))["entries"]
        return [entry for entry in entries if path in ("", entry["path"])]

    async def old_bars_asked(self) -> int:
        """How often anybody asked for bars of another day: what history does and news do not."""
        today = datetime.now(UTC).timestamp() * 1000 - DAY_MS
        return sum((entry["start_ms"] or today) < today for entry in await self.sent())

    async def command(self, *arguments: str) -> Any:
        """What a verb of the command line answers."""
        async with program("collector.cli", *arguments, "--json", **self.settings) as process:
            said = await process.output()
            assert await process.ended() == 0, process.said
        return json.loads(said)


@asynccontextmanager
async def live(uri: str, database_name: str, root: Path) -> AsyncIterator[Live]:
    """All of it on one migrated database and one lake, with nothing to do yet."""
    listed = LISTED.strftime("%Y-%m-%dT%H:%M")
    async with program("collector.simulated", "--port", "0", "--listed", listed) as exchange:
        url = await exchange.address()
        settings = {
            "COLLECTOR_MONGO_URI": uri,
            "COLLECTOR_MONGO_DB": database_name,
            "COLLECTOR_DATA": str(root),
            "COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": url}),
        }
        async with api_process(**settings) as api, program("workers", **settings) as worker:
            yield Live(api, worker, url, settings)
