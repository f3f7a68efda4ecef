"""Ten thousand ticks a second from a websocket to snapshots in MongoDB, and bursts.

The simulated exchange runs in a process of its own; it is read by its own adapter and, since it
speaks Binance's streams, through ccxt. Here are the source, the feed, the last prices and the
publication, as a worker runs them: a snapshot and a heartbeat a second. How far apart a real
worker's heartbeats are is measured on a process of its own. The bursts come from a venue in this
process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.ticks import TickRequest, ticks_of
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.simulated.adapter import SimulatedAdapter
from collector.simulated.listing import listings
from collector.streams.heartbeat import HeartbeatContext, heartbeat
from collector.streams.live_board import LiveBoard
from collector.streams.tick_health import PollBounds
from collector.streams.ticking import Ticking
from tests.bench.harness import Bench, Figure
from tests.bench.stage import PLENTY, stage
from tests.support.ccxt_streams import SYMBOLS, Line, socket, streaming, tick
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database
    from collector.streams.heartbeat import StreamFacts
    from collector.streams.last_prices import TickTotals

AT_LEAST = 10_000
MARKETS = 50
ASKED = 1.1
"""Ticks are sent at a rate a little above what is required."""
FLOOD = 6.0
"""And once at one that nobody can read."""
STALL_STEP = 0.005
CCXT = "binance"
"""The exchange whose class of ccxt's reads the simulated one."""
MOST_GAP = 1.5
"""Seconds between two heartbeats of a worker that a venue floods."""
LARGEST_BURST = 300
SETTLED_SECONDS = 0.3
"""A burst that was not read by then is judged by what was read of it."""


class _EveryPermit:
    async def before(self, call: Any) -> float:
        return float("inf")

    async def after(self, answer: Any) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Load:
    received: int
    seconds: float
    grown_mb: float
    stall_ms: float
    sent: int
    dropped: int
    published: int
    facts: StreamFacts

    @property
    def a_second(self) -> float:
        return self.received / self.seconds

    @property
    def totals(self) -> TickTotals:
        return self.facts.totals

    @property
    def uncounted(self) -> int:
        """Ticks that are neither in a snapshot nor counted as anything else."""
        totals = self.totals
        counted = totals.snapped + totals.superseded + totals.errors + self.facts.waiting
        return totals.received - counted


async def run(bench: Bench) -> list[Figure]:
    seconds = bench.pick(20.0, 6.0)
    loads: dict[str, _Load] = {}
    for way, exchange_id in (("", "simulated"), (" through ccxt", CCXT)):
        for name, rate in (("usual", AT_LEAST * ASKED), ("too many", AT_LEAST * FLOOD)):
            async with bench.database() as database, _venue(rate) as url:
                loads[name + way] = await _loaded(database, exchange_id, url, seconds)
    bench.show(
        f"{MARKETS} markets by websocket for {seconds:g} s",
        ["", *loads],
        [
            ["ticks read a second", *(each.a_second for each in loads.values())],
            ["prices published", *(each.published for each in loads.values())],
            ["replaced by a newer tick", *(each.totals.superseded for each in loads.values())],
            ["dropped by the exchange", *(each.dropped for each in loads.values())],
            ["memory grown, MB", *(each.grown_mb for each in loads.values())],
            ["longest stall of the loop, ms", *(each.stall_ms for each in loads.values())],
        ],
    )
    usual, by_ccxt = loads["usual"], loads["usual through ccxt"]
    unread = sum(each.sent - each.totals.received for each in loads.values())
    uncounted = sum(each.uncounted for each in loads.values())
    most_grown = max(each.grown_mb for each in loads.values())
    wrong, published = await _bursts(bench.pick(1_000, 200))
    gap, beats, read = await _heartbeats(bench, AT_LEAST * ASKED, bench.pick(60.0, 10.0))
    most, *flooded = await _heartbeats(bench, AT_LEAST * FLOOD, seconds)
    bench.show(
        "a worker that reads through ccxt",
        ["", "usual", "too many"],
        [
            ["heartbeats", beats, flooded[0]],
            ["longest time between two of them, s", gap, most],
            ["ticks read a second", read, flooded[1]],
        ],
    )
    bench.show(
        f"bursts of 2 to {LARGEST_BURST} ticks through ccxt",
        ["prices published", "not the last one of their burst"],
        [[published, wrong]],
    )
    return [
        Figure("streams.ticks read", usual.a_second, "/s", at_least=AT_LEAST),
        Figure("streams.ticks read through ccxt", by_ccxt.a_second, "/s", at_least=AT_LEAST),
        Figure("streams.memory grown", most_grown, " MB", at_most=20),
        Figure("streams.longest stall of the loop", usual.stall_ms, " ms"),
        Figure("streams.longest stall of the loop, ccxt", by_ccxt.stall_ms, " ms"),
        Figure("streams.ticks read and not counted", uncounted, "", at_most=0),
        Figure("streams.sent and not read", unread, "", at_most=0),
        Figure("streams.wrong prices after bursts", wrong, "", at_most=0),
        Figure("streams.longest gap between heartbeats", gap, " s", at_most=MOST_GAP),
        Figure("streams.longest gap between heartbeats, too many", most, " s"),
    ]


async def _bursts(prices: int) -> tuple[int, int]:
    """How many published prices were not the last of their burst, and how many there were."""
    chance, line = random.Random(1), Line()
    wrong = published = sent = 0
    async with streaming(socket(line)) as stream:
        while published < prices:
            size = chance.randint(2, LARGEST_BURST)
            burst = [(chance.choice(tuple(SYMBOLS)), float(sent + n + 1)) for n in range(size)]
            await line.send(*(tick(symbol, price) for symbol, price in burst))
            sent += size
            deadline = time.monotonic() + SETTLED_SECONDS
            while stream.prices.totals.received < sent and time.monotonic() < deadline:
                await asyncio.sleep(STALL_STEP)
            shown, last = stream.publish(), dict(burst)
            wrong += sum(shown.get(symbol) != price for symbol, price in last.items())
            published += len(last)
    return wrong, published


async def _heartbeats(bench: Bench, rate: float, seconds: float) -> tuple[float, int, float]:
    """Of a worker in a flood: the longest time between two, how many, ticks read a second."""
    markets = listings(MARKETS)
    options = ("--symbols", str(MARKETS), "--ticks-per-second", str(rate / MARKETS))
    async with stage(bench, Limits(PLENTY, 60_000), *options) as on:
        await ConnectorRegistry(on.database).ensure(CCXT, Limits(PLENTY, 60_000))
        params = {"symbols": [each.symbol for each in markets]}
        await JobQueue(on.database).add(JobSpec(CCXT, "price_stream", params=params))
        await on.start_worker(COLLECTOR_EXCHANGE_URLS=json.dumps({CCXT: on.url}))

        async def beat() -> dict[str, Any]:
            return await on.database.live.find_one({"kind": "heartbeat"}) or {}

        async def is_live() -> bool:
            return (await beat()).get("payload", {}).get("state") == "STREAM"

        await until(is_live, "prices arrive")
        first, written = await beat(), list[int]()
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            await asyncio.sleep(0.05)
            now = await beat()
            if not written or now["seen_at"] != written[-1]:
                written.append(now["seen_at"])
        gaps = [(later - earlier) / 1000 for earlier, later in pairwise(written)]
        before, after = (_received(each) for each in (first, now))
    return max(gaps), len(written), (after - before) / seconds


def _received(beat: dict[str, Any]) -> int:
    return int(beat["payload"]["context"]["price_stream"]["queue"]["received"])


async def _loaded(database: Database, exchange_id: str, url: str, seconds: float) -> _Load:
    clock, board = SystemClock(), LiveBoard(database)
    adapter = CcxtExchange if exchange_id == CCXT else SimulatedAdapter
    exchange = adapter(exchange_id, _EveryPermit(), clock=clock, urls={exchange_id: url})
    await exchange.load_markets()
    wanted = TickRequest(tuple(each.symbol for each in listings(MARKETS)))
    ticking = Ticking(
        exchange_id,
        1,
        lambda: ticks_of(exchange, wanted),
        ALWAYS_OPEN,
        clock,
        interval_seconds=1.0,
        bounds=PollBounds(),
        now=time.time(),
    )
    feeding = asyncio.create_task(ticking.feed.run(ticking.take))
    stalls = asyncio.create_task(_longest_stall(seconds + 2))
    published = 0
    await asyncio.sleep(2)  # Connected, and every buffer has its size.
    before, began, memory = ticking.facts(0.0).totals.received, time.monotonic(), _memory_mb()
    while time.monotonic() - began < seconds:
        await asyncio.sleep(1)
        snapshot = ticking.snapshot(time.time())
        assert snapshot is not None
        published += len(snapshot.prices)
        await board.publish_prices(snapshot)
        beat = heartbeat(ticking.facts(time.time()), HeartbeatContext())
        await board.publish_heartbeat(beat)
    received, took = ticking.facts(0.0).totals.received - before, time.monotonic() - began
    grown = _memory_mb() - memory
    await _stopped(url)
    sent = await _sent_and_read(url, ticking)
    feeding.cancel()
    await asyncio.gather(feeding, return_exceptions=True)
    await exchange.close()
    return _Load(
        received,
        took,
        grown,
        await stalls * 1000,
        sent["sent"],
        sent["dropped"],
        published,
        ticking.facts(time.time()),
    )


async def _stopped(url: str) -> None:
    """The exchange sends nothing more, so that what it has sent can be counted."""
    async with aiohttp.ClientSession() as session:
        await session.post(f"{url}/sim/faults", json={"kind": "socket_silence"})


async def _sent_and_read(url: str, ticking: Ticking) -> dict[str, int]:
    """What was sent in all, once nothing more arrives."""
    async with aiohttp.ClientSession() as session:
        for _ in range(100):
            await asyncio.sleep(0.1)
            counts: dict[str, int] = await (await session.get(f"{url}/sim/sockets")).json()
            if counts["sent"] == ticking.facts(0.0).totals.received:
                break
    return counts


async def _longest_stall(seconds: float) -> float:
    """How much later than asked a short sleep ended, at the worst."""
    worst, ends = 0.0, time.monotonic() + seconds
    while time.monotonic() < ends:
        asked = time.monotonic()
        await asyncio.sleep(STALL_STEP)
        worst = max(worst, time.monotonic() - asked - STALL_STEP)
    return worst


@asynccontextmanager
async def _venue(rate: float) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "collector.simulated", "--port", "0"),
        *("--symbols", str(MARKETS), "--ticks-per-second", str(rate / MARKETS)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().rsplit(" ", 1)[1].strip()
    finally:
        process.terminate()
        await process.wait()


def _memory_mb() -> float:
    """What the process holds now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
