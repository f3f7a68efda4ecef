"""A hundred thousand jobs and as many deleted ones: lists, and a gap scan's look.

What a page costs must not depend on how many jobs there are, so each is measured beside the same on
an almost empty collection. A gap scan over ten thousand backfills must not hold the event loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from bson import ObjectId

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.fetching import owned
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.series import Series
from tests.bench.harness import Bench, Figure, in_turn, ratio
from workers.handlers.gap_scan import SERIES_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.mongo.client import Database, Document

EXCHANGES = [f"exchange{number}" for number in range(20)]
TYPES = ("ohlcv_incremental", "ohlcv_backfill", "gap_backfill")
TIMEFRAMES = ("1m", "5m", "1h", "1d")
STATES = (State.IDLE, State.QUEUED, State.WAITING, State.SUCCESS)
FEW = 2_000
PAGE = 20
INSERTED_AT_ONCE = 5_000
MOST_TIMES_EMPTY = 2.0
MOST_STALL_MS = 25.0
RARE = {"state": State.FAILED.value}
FILTERS: dict[str, Mapping[str, str]] = {
    "all": {},
    "exchange": {"exchange_id": EXCHANGES[3]},
    "type": {"type": TYPES[0]},
    "timeframe": {"timeframe": TIMEFRAMES[2]},
    "state": {"state": State.QUEUED.value},
    "exchange, type, state": {
        "exchange_id": EXCHANGES[0],
        "type": TYPES[0],
        "state": State.IDLE.value,
    },
    "failed": RARE,
    "symbol": {"symbol": "C7/USDT"},
    "deleted": {"status": "deleted"},
}


async def run(bench: Bench) -> list[Figure]:
    jobs = bench.pick(100_000, 20_000)
    async with AsyncExitStack() as stack:
        few = await stack.enter_async_context(bench.database())
        many = await stack.enter_async_context(bench.database())
        started = time.monotonic()
        await fill(few, FEW, deleted=FEW)
        await fill(many, jobs, deleted=jobs)
        bench.console.print(
            f"{jobs:,} jobs and as many deleted ones in {time.monotonic() - started:.0f} s"
        )
        figures = await _lists(bench, few, many)
    async with bench.database() as database:
        figures += await _gap_scan(bench, database, bench.pick(10_000, 4_000))
    return figures


async def fill(database: Database, jobs: int, *, deleted: int) -> None:
    """Deleted jobs first, as the oldest would be, then live ones of every kind, a few failed."""
    for exchange_id in EXCHANGES:
        await ConnectorRegistry(database).ensure(exchange_id, Limits(1_000, 1_000))
    made, _ = await JobQueue(database).add(JobSpec(EXCHANGES[0], "count", "X/USDT", "1m"))
    await database.jobs.delete_many({})
    rng = random.Random(1)
    for start in range(0, deleted + jobs, INSERTED_AT_ONCE):
        numbers = range(start, min(start + INSERTED_AT_ONCE, deleted + jobs))
        await database.jobs.insert_many(
            [_document(made.document, number, deleted, jobs, rng) for number in numbers],
            ordered=False,
        )


def _document(
    made: Mapping[str, Any], number: int, deleted: int, jobs: int, rng: random.Random
) -> Document:
    # As many failed ones in a small collection as in a large one.
    failed = number >= deleted and (number - deleted) % (jobs // PAGE) == 0
    return {
        **made,
        "_id": ObjectId(),
        "exchange_id": rng.choice(EXCHANGES),
        "type": rng.choice(TYPES),
        "symbol": f"C{number % deleted // len(EXCHANGES)}/USDT",
        "timeframe": rng.choice(TIMEFRAMES),
        "unique_key": str(number),
        "status": "deleted" if number < deleted else "active",
        "state": (State.FAILED if failed else rng.choice(STATES)).value,
        "cursor": {**made["cursor"], "since_ms": 1_000_000 + number},
    }


# -- lists ----------------------------------------------------------------------------------------


async def _lists(bench: Bench, few: Database, many: Database) -> list[Figure]:
    rows: list[list[Any]] = []
    figures = []
    for name, filters in FILTERS.items():
        for page in ("first", "late"):
            afters = {
                database.raw.name: await _after(database, filters, page) for database in (few, many)
            }
            samples = await in_turn(
                {
                    size: partial(_page_ms, database, filters, afters[database.raw.name])
                    for size, database in (("few", few), ("many", many))
                },
                rounds=bench.pick(15, 7),
            )
            times = ratio(samples, "many", "few")
            rows.append([f"{name}, {page}", *(median(each) for each in samples.values()), times])
            figures.append(
                Figure(
                    f"jobs.list many / few: {name}, {page} page", times, at_most=MOST_TIMES_EMPTY
                )
            )
    bench.show("a page of 20 jobs, ms", ["", "few", "many", "times"], rows)
    return figures


async def _after(database: Database, filters: Mapping[str, str], page: str) -> ObjectId | None:
    """Where a late page begins: two pages before the end."""
    if page == "first":
        return None
    last = await JobQueue(database).find(filters, limit=2 * PAGE, newest_first=True)
    return last[-1].id if last else None


async def _page_ms(database: Database, filters: Mapping[str, str], after: ObjectId | None) -> float:
    queue, started = JobQueue(database), time.monotonic()
    await queue.find(filters, after=after, limit=PAGE)
    return (time.monotonic() - started) * 1000


# -- a gap scan's look ----------------------------------------------------------------------------


@dataclass(slots=True)
class Stalls:
    """How long nothing else of the process could run."""

    gaps_ms: list[float] = field(default_factory=list)

    @property
    def longest_ms(self) -> float:
        return max(self.gaps_ms, default=0.0)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        async def tick() -> None:
            last = time.monotonic()
            while True:
                await asyncio.sleep(0)
                now = time.monotonic()
                self.gaps_ms.append((now - last) * 1000)
                last = now

        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticking.cancel()


async def _gap_scan(bench: Bench, database: Database, backfills: int) -> list[Figure]:
    made, _ = await JobQueue(database).add(
        JobSpec("x", "ohlcv_backfill", "X/USDT", "1m", cursor=Cursor(1, 2))
    )
    series = [Series.of("x", f"C{number}/USDT", "1m") for number in range(backfills)]
    for start in range(0, backfills, INSERTED_AT_ONCE):
        some = series[start : start + INSERTED_AT_ONCE]
        await database.jobs.insert_many(
            [
                {**made.document, "_id": ObjectId(), "symbol": each.symbol, "unique_key": str(each)}
                for each in some
            ]
        )
    stalls, took = [], []
    for _ in range(bench.pick(9, 5)):
        each, started = Stalls(), time.monotonic()
        async with each.watched():
            for start in range(0, backfills, SERIES_AT_ONCE):
                found = await owned(database, "x", series[start : start + SERIES_AT_ONCE])
                assert len(found) == SERIES_AT_ONCE
        took.append((time.monotonic() - started) * 1000)
        stalls.append(each.longest_ms)
    bench.show(
        f"a gap scan's look at what {backfills:,} backfills own",
        ["", "median", "largest"],
        [
            ["ms in all", median(took), max(took)],
            ["longest stall, ms", median(stalls), max(stalls)],
        ],
    )
    return [
        Figure("jobs.longest stall of a gap scan", median(stalls), " ms", at_most=MOST_STALL_MS),
        Figure("jobs.a gap scan's look, a series", median(took) / backfills, " ms"),
    ]
