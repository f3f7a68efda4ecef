"""Publication to Redis: how long it stalls the event loop, and how late bars arrive.

The stall is measured in a process that publishes bars of 50 series, prices and heartbeats, while
Redis is there, is killed, hangs, and is back: the longest time that a task which wants to run every
millisecond had to wait. What publication causes happens in every round, what other programs of the
machine cause does not, so the round with the least counts. Beside it stands the longest time that
the loop was busy without a pause, by its own CPU time.

Lag is measured with a worker as a process of its own on bars that close on the real minute: from
the close to the arrival at a subscriber.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bson import ObjectId
from pydantic import SecretStr

from collector.backoff import Backoff
from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.publication.closed_bars import ClosedBars
from collector.publication.opening import publication
from collector.simulated.listing import listings
from collector.store.store import Store
from collector.streams.publisher import HeartbeatMessage, PriceSnapshot, SnapPrice
from tests.bench.harness import Bench, Figure, percentile
from tests.bench.stage import EXCHANGE, PLENTY, Stage, stage
from tests.support.redis_server import RedisServer, Subscriber

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.publication.publisher import RedisPublisher

SYMBOLS = 50
MINUTE_MS = 60_000
STALL_MS = 50
LAG_SECONDS = 5
PULSE_SECONDS = 0.001
CHANNEL = f"{EXCHANGE}:ohlcv"
SOON = Backoff(base_seconds=0.2, max_seconds=0.5)


async def run(bench: Bench) -> list[Figure]:
    rounds = [await _stalls(bench) for _ in range(bench.pick(7, 4))]
    waited, busy = [each.waited_ms for each in rounds], [each.busy_ms for each in rounds]
    bench.show(
        f"the loop's longest stall while {SYMBOLS} series are published, ms",
        ["", "least of a round", "median", "most"],
        [
            ["others waited", min(waited), median(waited), max(waited)],
            ["it was busy", min(busy), median(busy), max(busy)],
        ],
    )
    lags, ways = await _lags(bench, bench.pick(3, 1))
    bench.show(
        f"bars of {SYMBOLS} series at a subscriber, s",
        ["after", "p50", "p99", "worst", "bars"],
        [
            [after, percentile(values, 0.5), percentile(values, 0.99), max(values), len(values)]
            for after, values in {"the close": lags, "they were durable": ways}.items()
        ],
    )
    return [
        Figure("publication.longest stall of the loop", min(waited), " ms", at_most=STALL_MS),
        Figure("publication.longest busy time of the loop", median(busy), " ms", at_most=STALL_MS),
        Figure("publication.lag of a bar, worst", max(lags), " s", at_most=LAG_SECONDS),
        Figure("publication.from durable to subscriber, p99", percentile(ways, 0.99), " s"),
    ]


# -- the stall -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stalls:
    """The longest of a round."""

    waited_ms: float
    busy_ms: float


async def _stalls(bench: Bench) -> Stalls:
    async with _publisher(bench) as (server, publisher):
        pulse = asyncio.create_task(_pulse())
        load = asyncio.create_task(_load(publisher))
        phase = bench.pick(2.0, 0.7)
        await asyncio.sleep(phase)
        await server.kill()
        await asyncio.sleep(phase)
        await server.start()
        await asyncio.sleep(phase)
        server.hang()
        await asyncio.sleep(phase)
        server.go_on()
        await asyncio.sleep(phase)
        load.cancel()
        pulse.cancel()
        await asyncio.gather(load, return_exceptions=True)
        return await pulse


async def _pulse() -> Stalls:
    """Until it is cancelled."""
    waited = busy = 0.0
    wall, cpu = time.perf_counter(), time.thread_time()
    try:
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            wall_now, cpu_now = time.perf_counter(), time.thread_time()
            waited = max(waited, wall_now - wall - PULSE_SECONDS)
            busy = max(busy, cpu_now - cpu)
            wall, cpu = wall_now, cpu_now
    except asyncio.CancelledError:
        return Stalls(waited * 1000, busy * 1000)


async def _load(publisher: RedisPublisher) -> None:
    """Bars of every series, prices and a heartbeat, ten times a second: far more than is usual."""
    series = [Series.of(EXCHANGE, f"C{number}/USDT", "1m") for number in range(SYMBOLS)]
    ids = [ObjectId() for _ in series]
    round_number = 0
    while True:
        at = round_number * MINUTE_MS
        batch = CandleBatch.of([(at, 1.0, 2.0, 0.5, 1.5, 9.0)])
        now = time.time()
        for job_id, each in zip(ids, series, strict=True):
            bars = ClosedBars(each, job_id, 1, at, at + MINUTE_MS, 0, batch, now)
            await publisher.publish_closed(bars)
            await asyncio.sleep(0)
        prices = tuple(SnapPrice(each.symbol, 1.0, 2.0, 1.5, now, now) for each in series)
        await publisher.publish_prices(PriceSnapshot(EXCHANGE, 1, now, prices))
        beat = {"ts": now, "context": {"supervisor": publisher.supervisor_shown()}}
        await publisher.publish_heartbeat(HeartbeatMessage(EXCHANGE, 1, beat))
        round_number += 1
        await asyncio.sleep(0.1)


@asynccontextmanager
async def _publisher(bench: Bench) -> AsyncIterator[tuple[RedisServer, RedisPublisher]]:
    with tempfile.TemporaryDirectory(prefix="collector-publication-") as folder:
        server = RedisServer(Path(folder), durable=False)
        await server.start()
        async with (
            bench.database() as database,
            publication(
                SecretStr(server.url), database, Store(Path(folder) / "lake"), backoff=SOON
            ) as publisher,
        ):
            yield server, publisher
        await server.kill()


# -- the lag ---------------------------------------------------------------------------------------


async def _lags(bench: Bench, minutes: int) -> tuple[list[float], list[float]]:
    """Seconds from a bar's close, and from the moment it was durable, to the subscriber."""
    with tempfile.TemporaryDirectory(prefix="collector-publication-") as folder:
        server = RedisServer(Path(folder), durable=False)
        await server.start()
        options = ("--symbols", str(SYMBOLS), "--latency-ms", "20")
        async with (
            Subscriber(server, [CHANNEL]) as received,
            stage(bench, Limits(PLENTY, MINUTE_MS), *options) as on,
        ):
            first_ms = await _streams(on)
            await on.start_worker(COLLECTOR_REDIS_URL=server.url)
            await on.workers_are_up()
            # The first minute warms up: markets are loaded then.
            warm_ms = first_ms + MINUTE_MS
            wanted = SYMBOLS * minutes
            async with asyncio.timeout(60 * (minutes + 2) + 30):
                while len(_bars(received, warm_ms)) < wanted:
                    await asyncio.sleep(0.1)
        await server.kill()
    found = _bars(received, warm_ms)[:wanted]
    lags = [at - (bar["close_time"] + 1) / 1000 for at, bar, _ in found]
    return lags, [at - fetched for at, _, fetched in found]


async def _streams(on: Stage) -> int:
    """Jobs for new bars of every symbol from now on; returns where they begin."""
    now_ms = on.database.server_clock.now_ms()
    first_ms = now_ms - now_ms % MINUTE_MS
    queue = JobQueue(on.database)
    for listing in listings(SYMBOLS):
        cursor = Cursor(since_ms=first_ms)
        spec = JobSpec(EXCHANGE, "ohlcv_incremental", listing.symbol, "1m", cursor=cursor)
        await queue.add(spec)
    return first_ms


def _bars(received: Subscriber, from_ms: int) -> list[tuple[float, dict[str, float], float]]:
    """When each bar came, the bar, and when it was fetched."""
    return [
        (each.at, bar, each.payload["fetched_at"])
        for each in received.messages
        for bar in each.payload["bars"]
        if bar["open_time"] >= from_ms
    ]
