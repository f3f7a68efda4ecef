"""How long after `POST /jobs/{id}/run` the exchange sees the first request of the job.

The API, an idle worker and the exchange are processes of their own. The exchange's journal says
when the request arrived, by the clock of this machine, which is also the caller's.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

import aiohttp

from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.schedule import Every
from collector.jobs.states import State
from tests.bench.harness import Bench, Figure, percentile
from tests.bench.stage import EXCHANGE, PLENTY, Stage, stage

if TYPE_CHECKING:
    from bson import ObjectId

HOURLY = Every(3_600_000)
BEHIND_MS = 300_000
P50_LIMIT_MS = 100
WARM_UPS = 3


async def run(bench: Bench) -> list[Figure]:
    answered, arrived = await _measure(bench, bench.pick(200, 25))
    bench.show(
        "from the call, ms",
        ["until", "p50", "p99", "worst", "runs"],
        [
            [until, percentile(waits, 0.5), percentile(waits, 0.99), max(waits), len(waits)]
            for until, waits in {
                "the API has answered": answered,
                "the exchange sees a request": arrived,
            }.items()
        ],
    )
    return [
        Figure("run.POST to request p50", percentile(arrived, 0.5), " ms", at_most=P50_LIMIT_MS),
        Figure("run.POST to request p99", percentile(arrived, 0.99), " ms"),
    ]


async def _measure(bench: Bench, runs: int) -> tuple[list[float], list[float]]:
    """Milliseconds until the API's answer, and until the request is in the exchange's journal."""
    answered, arrived = [], []
    async with stage(bench, Limits(PLENTY, 1_000)) as on:
        url = await on.start_api()
        await on.start_worker()
        await on.workers_are_up()
        job_id = await _job(on)
        async with aiohttp.ClientSession(url) as session:
            for number in range(-WARM_UPS, runs):
                await _at_rest(on)
                await _put_back(on, job_id)
                seen = (await on.told("summary"))["requests"]
                # Somewhere in the rhythm of whatever else the worker does by the clock.
                await asyncio.sleep(random.random() * 0.1)
                called_ms = time.time() * 1000
                async with session.post(f"/api/v1/jobs/{job_id}/run") as response:
                    response.raise_for_status()
                    await response.read()
                answered_ms = time.time() * 1000
                arrived_ms = await _first_request(on, seen)
                if number >= 0:
                    answered.append(answered_ms - called_ms)
                    arrived.append(arrived_ms - called_ms)
    return answered, arrived


async def _job(on: Stage) -> ObjectId:
    """The usual job, except that nothing but a call makes it run within the hour."""
    now_ms = on.database.server_clock.now_ms()
    spec = JobSpec(
        EXCHANGE,
        "ohlcv_incremental",
        "BTC/USDT",
        "1m",
        schedule=HOURLY,
        cursor=Cursor(since_ms=now_ms - BEHIND_MS),
        first_run_ms=now_ms + HOURLY.interval_ms,
    )
    job, _ = await JobQueue(on.database).add(spec)
    return job.id


async def _at_rest(on: Stage) -> None:
    """Until no job runs or waits to run: the worker is idle."""
    busy = {"state": {"$in": [State.QUEUED.value, State.RUNNING.value]}}
    async with asyncio.timeout(60):
        while await on.database.jobs.count_documents(busy):
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.05)  # and has looked around once more


async def _put_back(on: Stage, job_id: ObjectId) -> None:
    """So that there are closed bars to ask for. Touches nothing that wakes a worker."""
    behind = on.database.server_clock.now_ms() - BEHIND_MS
    await on.database.jobs.update_one({"_id": job_id}, {"$set": {"cursor.since_ms": behind}})


async def _first_request(on: Stage, seen: int) -> float:
    """When the first request after the `seen` ones arrived."""
    async with asyncio.timeout(60):
        while not (page := await on.told(f"journal?since={seen}"))["entries"]:
            await asyncio.sleep(0.02)
    arrived_ms: float = page["entries"][0]["at_ms"]
    return arrived_ms
