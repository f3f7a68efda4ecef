"""What a worker's memory is after a year of minutes, and after ten years more.

One worker, a process of its own, fills both from an exchange without a limit and seals them. Its
memory must not know how long a history is.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.simulated.listing import WELL_KNOWN
from tests.bench.harness import Bench, Figure
from tests.bench.lake_bars import DAY_MS
from tests.bench.stage import EXCHANGE, PLENTY, Stage, stage

if TYPE_CHECKING:
    from collector.jobs.job import Job

MOST_MB = 300
FLAT = 1.2
_SLOWEST_S = 1_200.0


@dataclass(frozen=True, slots=True)
class Filled:
    """What one backfill took. The peak is the process's, from its start."""

    days: int
    fill_cpu_s: float
    seal_cpu_s: float
    wall_s: float
    peak_mb: float


async def run(bench: Bench) -> list[Figure]:
    short, long = bench.pick((365, 3_650), (30, 300))
    until = SystemClock().wall_ms() // DAY_MS * DAY_MS
    listed = datetime.fromtimestamp((until - long * DAY_MS) / 1000, UTC)
    options = ("--latency-ms", "20", "--listed", listed.strftime("%Y-%m-%dT%H:%M"))
    async with stage(bench, Limits(PLENTY, 1_000), *options) as on:
        await on.start_worker()
        await on.workers_are_up()
        start_cpu_s = on.costs()["workers"].cpu_s
        one, ten = [
            await _filled(on, listing.symbol, days, until)
            for listing, days in zip(WELL_KNOWN[:2], (short, long), strict=True)
        ]
    bench.show(
        f"backfills of one worker, {start_cpu_s:.1f} s CPU to start it",
        ["", "wall s", "CPU s, fill", "CPU s, seal", "CPU ms / 1000 bars", "peak MB"],
        [
            [
                f"{each.days:,} days",
                each.wall_s,
                each.fill_cpu_s,
                each.seal_cpu_s,
                1e6 * (each.fill_cpu_s + each.seal_cpu_s) / (each.days * 1440),
                each.peak_mb,
            ]
            for each in (one, ten)
        ],
    )
    name = f"lake.history, {long:,} days"
    return [
        Figure(f"{name}: peak memory", ten.peak_mb, " MB", at_most=MOST_MB),
        Figure(f"{name}: peak / after {short} days", ten.peak_mb / one.peak_mb, at_most=FLAT),
    ]


async def _filled(on: Stage, symbol: str, days: int, until_ms: int) -> Filled:
    queue = JobQueue(on.database)
    cursor = Cursor(since_ms=until_ms - days * DAY_MS, until_ms=until_ms)
    before, started = on.costs()["workers"].cpu_s, time.monotonic()
    await queue.add(JobSpec(EXCHANGE, "ohlcv_backfill", symbol, "1m", cursor=cursor))
    fetched = before
    async with asyncio.timeout(_SLOWEST_S):
        while (job := await _job_of(queue, symbol)).state is not State.SUCCESS:
            if job.cursor.since_ms < until_ms:
                fetched = on.costs()["workers"].cpu_s
            await asyncio.sleep(0.05)
    cost = on.costs()["workers"]
    return Filled(
        days, fetched - before, cost.cpu_s - fetched, time.monotonic() - started, cost.peak_mb
    )


async def _job_of(queue: JobQueue, symbol: str) -> Job:
    return next(job for job in await queue.find() if job.symbol == symbol)
