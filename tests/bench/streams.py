"""Ten thousand ticks a second from a websocket to snapshots in MongoDB.

The simulated exchange runs in a process of its own. Here are the source, the feed, the last prices
and the publication, as a worker runs them: a snapshot and a heartbeat a second.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from collector.clock import SystemClock
from collector.exchanges.ticks import TickRequest
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.simulated.listing import listings
from collector.simulated.ticks import SimulatedTicks
from collector.streams.heartbeat import HeartbeatContext, heartbeat
from collector.streams.live_board import LiveBoard
from collector.streams.tick_health import PollBounds
from collector.streams.ticking import Ticking
from tests.bench.harness import Bench, Figure

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
    for name, rate in (("usual", AT_LEAST * ASKED), ("too many", AT_LEAST * FLOOD)):
        async with bench.database() as database, _venue(rate) as url:
            loads[name] = await _loaded(database, url, seconds)
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
    usual, flood = loads["usual"], loads["too many"]
    unread = sum(each.sent - each.totals.received for each in loads.values())
    uncounted = sum(each.uncounted for each in loads.values())
    return [
        Figure("streams.ticks read", usual.a_second, "/s", at_least=AT_LEAST),
        Figure("streams.memory grown", max(usual.grown_mb, flood.grown_mb), " MB", at_most=20),
        Figure("streams.longest stall of the loop", usual.stall_ms, " ms"),
        Figure("streams.ticks read and not counted", uncounted, "", at_most=0),
        Figure("streams.sent and not read", unread, "", at_most=0),
    ]


async def _loaded(database: Database, url: str, seconds: float) -> _Load:
    clock, board = SystemClock(), LiveBoard(database)
    markets = listings(MARKETS)
    wanted = TickRequest(tuple(each.symbol for each in markets))
    venue_ids = {each.symbol: each.id for each in markets}
    ticking = Ticking(
        "simulated",
        1,
        lambda: SimulatedTicks(url, wanted, venue_ids, _EveryPermit(), clock),
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
