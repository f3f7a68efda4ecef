"""Many series at 1m cadence: how late each bar is durable, and what a bar costs everyone.

Bars close on the real minute, so this runs for minutes. The first one only warms up: workers load
the markets then. A bar's lag is the time from its close until the run that stored it was settled,
by the history of runs: exact for every bar, however late.
"""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.schedule import BarClose
from collector.market.timeframe import Timeframe
from collector.simulated.listing import listings
from tests.bench.harness import Bench, Figure, number, percentile
from tests.bench.stage import EXCHANGE, PLENTY, Stage, stage

if TYPE_CHECKING:
    from bson import ObjectId

    from tests.bench.stage import Cost

WORKERS = 2
TYPE = "ohlcv_incremental"
MINUTE_MS = 60_000
MINUTE = Timeframe.parse("1m")
ADD_AT_ONCE = 200
ONE_BAR_S = 60.0
COMMANDS = ("find", "findAndModify", "update", "insert", "getMore", "aggregate", "hello")


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is counted, at one moment."""

    costs: dict[str, Cost]
    commands: dict[str, int]
    written: dict[str, int]
    """Documents, as mongod counts them."""
    busy_us: dict[str, int]
    """mongod's own time by kind of operation."""
    files: int


@dataclass(frozen=True, slots=True)
class Lags:
    """Seconds from the close of each bar of the measured minutes to its durability."""

    stored: list[float]
    missing: list[float]
    """How old the bars are that nobody has fetched yet."""
    unrecorded: int
    """Bars behind their job's cursor that no run claims: the record of the run was lost."""

    @property
    def all(self) -> list[float]:
        return self.stored + self.missing

    @property
    def within_one_bar(self) -> float:
        return sum(lag <= ONE_BAR_S for lag in self.stored) / len(self.all)


async def run(bench: Bench) -> list[Figure]:
    count = 10_000 if bench.ten_thousand else bench.pick(1_000, 200)
    minutes = bench.pick(3, 2)
    concurrency = str(max(32, count // 40))
    options = ("--symbols", str(count), "--latency-ms", "20")
    async with stage(bench, Limits(PLENTY, MINUTE_MS), *options) as on:
        now_ms = on.database.server_clock.now_ms
        first_ms = await _add_jobs(on, count)
        for _ in range(WORKERS):
            await on.start_worker("--concurrency", concurrency)
        start_ms = first_ms + MINUTE_MS  # after one minute to warm up
        await asyncio.sleep((start_ms - now_ms()) / 1000)
        before = await _picture(on)
        await asyncio.sleep((start_ms + minutes * MINUTE_MS - now_ms()) / 1000)
        after = await _picture(on)
        ended_ms = now_ms()
        await _drain(on)
        lags = await _lags(on, start_ms, minutes, ended_ms)
    bars = len(lags.stored) + lags.unrecorded
    title = f"{count:,} series at 1m, {WORKERS} workers of {concurrency}, {minutes} minutes"
    _show(bench, title, lags, before, after, minutes)
    cpu_s = sum(after.costs[kind].since(before.costs[kind]).cpu_s for kind in after.costs)
    at = f"series.{count:,}:"
    return [
        Figure(f"{at} bars within one bar", lags.within_one_bar, "", at_least=1.0),
        Figure(f"{at} lag p99", percentile(lags.all, 0.99), " s", at_most=ONE_BAR_S),
        Figure(f"{at} statements / bar", _statements(before, after) / max(1, bars), ""),
        Figure(f"{at} CPU of all, ms / bar", 1000 * cpu_s / max(1, bars), " ms"),
        Figure(f"{at} worker memory", after.costs["workers"].peak_mb, " MB", at_most=300),
    ]


async def _add_jobs(on: Stage, count: int) -> int:
    """Makes the jobs; each starts as if it had run before. Returns the first bar's close."""
    queue = JobQueue(on.database)
    now_ms = on.database.server_clock.now_ms()
    # Time to make them all, at some 500 a second, and for the workers to start.
    since = MINUTE.floor(now_ms + 15_000 + 4 * count)
    schedule = BarClose(MINUTE)
    specs = [
        JobSpec(
            EXCHANGE,
            TYPE,
            listing.symbol,
            MINUTE.name,
            schedule=schedule,
            cursor=Cursor(since_ms=since),
            first_run_ms=schedule.next_run(since + 30_000, random.random()),
        )
        for listing in listings(count)
    ]
    for at in range(0, count, ADD_AT_ONCE):
        await asyncio.gather(*(queue.add(spec) for spec in specs[at : at + ADD_AT_ONCE]))
    return since + MINUTE_MS


async def _drain(on: Stage) -> None:
    """Ends the workers softly, so that the history of runs is complete."""
    for worker in on.workers:
        worker.signal(signal.SIGTERM)
    for worker in on.workers:
        await worker.ended(60)


async def _picture(on: Stage) -> Picture:
    status = await on.database.raw.client.admin.command("serverStatus")
    ran = status["metrics"]["commands"]
    return Picture(
        costs=on.costs(),
        commands={name: int(ran[name]["total"]) for name in COMMANDS},
        written={name: int(n) for name, n in status["metrics"]["document"].items()},
        busy_us={name: int(kind["latency"]) for name, kind in status["opLatencies"].items()},
        files=sum(1 for _ in on.root.rglob("*.parquet")),
    )


async def _lags(on: Stage, start_ms: int, minutes: int, ended_ms: int) -> Lags:
    """Of every bar that closed in the measured minutes."""
    ends: dict[tuple[ObjectId, int], int] = {}
    async for one in on.database.raw["job_runs"].find({"bars": {"$gt": 0}}):
        last_close = MINUTE.floor(one["started_at"])
        for nth in range(one["bars"]):
            ends[one["job_id"], last_close - nth * MINUTE_MS] = one["ended_at"]
    stored, missing, unrecorded = [], [], 0
    async for job in on.database.raw["jobs"].find({"type": TYPE}):
        for close_ms in range(start_ms, start_ms + minutes * MINUTE_MS, MINUTE_MS):
            ended = ends.get((job["_id"], close_ms), 2 * ended_ms)
            if ended <= ended_ms:
                stored.append((ended - close_ms) / 1000)
            elif job["cursor"]["since_ms"] >= close_ms:
                unrecorded += 1
            else:
                missing.append((ended_ms - close_ms) / 1000)
    return Lags(stored, missing, unrecorded)


def _statements(before: Picture, after: Picture) -> int:
    return sum(after.commands[name] - before.commands[name] for name in COMMANDS)


def _show(
    bench: Bench, title: str, lags: Lags, before: Picture, after: Picture, minutes: int
) -> None:
    bars = max(1, len(lags.stored) + lags.unrecorded)
    values = lags.all
    rows: list[list[Any]] = [
        ["lag s: p50", percentile(values, 0.5)],
        ["lag s: p99", percentile(values, 0.99)],
        ["lag s: max", max(values)],
        ["within one bar", f"{lags.within_one_bar:.2%}"],
        ["bars stored / not yet", f"{len(lags.stored):,} / {len(lags.missing):,}"],
        ["bars whose run has no record", f"{lags.unrecorded:,}"],
        ["files a minute", (after.files - before.files) / minutes],
        ["files in all", after.files],
    ]
    for kind, cost in after.costs.items():
        used = cost.since(before.costs[kind])
        share = used.cpu_s / (60 * minutes)
        per = number(1000 * used.cpu_s / bars)
        rows.append(
            [
                f"{kind}: CPU s / 1000 bars, cores, peak MB",
                f"{per}, {share:.2f}, {cost.peak_mb:.0f}",
            ]
        )
    asked, written, busy = before.commands, before.written, before.busy_us
    rows += [[f"{name} / bar", (n - asked[name]) / bars] for name, n in after.commands.items()]
    rows += [
        [f"docs {name} / bar", (n - written[name]) / bars] for name, n in after.written.items()
    ]
    rows += [
        [f"mongod's {name}: ms / bar", (us - busy[name]) / bars / 1000]
        for name, us in after.busy_us.items()
    ]
    bench.show(title, ["", "value"], rows)
