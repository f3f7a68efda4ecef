"""MongoDB's clock steps by ten minutes, to and fro, under live jobs and a backfill."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import RateLimited
from tests.acceptance.job_diary import JobDiary
from tests.acceptance.live_jobs import WITHIN_SECONDS, LiveJobs
from tests.acceptance.stepped_mongo import SteppedMongo, require_stepped_clocks, stepped_mongo
from tests.support.fleet import LONG, PAGES_OF_100, fleet
from tests.support.most_in_any import most_in_any
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.client import Database

TEN_MINUTES = 600
WAYS = [(TEN_MINUTES, 0), (-TEN_MINUTES, 0)] if LONG else [(TEN_MINUTES, 0)]
"""How far the clock is ahead after each step. The second step of the first way goes back."""
HANDFUL = 12
"""Leases a second of three jobs that are due once a second, and all of them late at that."""


@pytest.fixture
async def own_mongo(tmp_path: Path) -> AsyncIterator[SteppedMongo]:
    require_stepped_clocks()
    async with stepped_mongo(tmp_path) as mongo:
        yield mongo


async def ahead_seconds(database: Database) -> tuple[int, int]:
    """How far the server is ahead of this machine: as it greets, and inside a statement."""
    greeting = (await database.read_server_clock()).timestamp() - time.time()
    (row,) = await database.system.aggregate([{"$limit": 1}, {"$project": {"now": "$$NOW"}}])
    return round(greeting), round(row["now"].timestamp() - time.time())


async def test_the_clock_of_this_mongod_can_be_stepped(
    own_mongo: SteppedMongo, own_database: Database
) -> None:
    assert await ahead_seconds(own_database) == (0, 0)
    for seconds in (TEN_MINUTES, -TEN_MINUTES):
        own_mongo.clock.step_to(seconds)

        async def is_there(seconds: int = seconds) -> bool:
            return await ahead_seconds(own_database) == (seconds, seconds)

        await until(is_there, f"the clock is at {seconds:+} s")


async def test_a_step_ahead_by_less_than_a_window_gives_nobody_more_than_the_limit(
    own_mongo: SteppedMongo, own_database: Database
) -> None:
    """What was granted before it would be forgotten too early, and not all of it at once."""
    await ConnectorRegistry(own_database).ensure("x", Limits(10, 12_000))
    times: list[float] = []

    async def spend(most: int, until: float) -> None:
        while len(times) < most and time.monotonic() < until:
            try:
                await limiter.acquire("x")
            except RateLimited:
                await asyncio.sleep(0.1)
            else:
                times.append(time.monotonic())

    async with Limiter(own_database) as limiter:
        began = time.monotonic()
        await spend(5, began + 2)
        await asyncio.sleep(began + 5 - time.monotonic())
        await spend(8, began + 7)
        own_mongo.clock.step_to(4)
        await spend(9, began + 8)
        await spend(1_000, began + 22)
    assert len(times) > 10
    assert most_in_any(12.0, times) <= 10


@pytest.mark.parametrize("steps", WAYS)
async def test_live_jobs_keep_their_cadence_whatever_mongodbs_clock_does(
    own_mongo: SteppedMongo, own_database: Database, tmp_path: Path, steps: tuple[int, ...]
) -> None:
    limits = Limits(20, 2_000)
    async with fleet(
        own_database, own_mongo.uri, tmp_path / "lake", limits=limits, **PAGES_OF_100
    ) as f:
        diary = await JobDiary.begin(own_database)
        live = await LiveJobs.add(f, 3)
        async with f.worker(), f.worker():
            await live.go_on()
            history = await f.backfill(days=11)
            await f.reaches(history, 10)
            for seconds in steps:
                page = (await f.queue.get(history.id)).cursor.page
                async with stepped(own_mongo, seconds, live):
                    await live.run_again()
                    await live.keep_their_cadence(runs=3)
                await f.reaches(history, page + 10, WITHIN_SECONDS)
            await live.go_on()
            done = await f.finished(history, WITHIN_SECONDS)
        await diary.check()
        await live.check_equal_to_the_truth()
        f.check(done)


@asynccontextmanager
async def stepped(mongo: SteppedMongo, seconds: int, live: LiveJobs) -> AsyncIterator[None]:
    """Steps the clock, and counts the leases of every second until the block ends."""
    counts = [(time.monotonic(), await live.fences())]

    async def count() -> None:
        while True:
            await asyncio.sleep(1)
            counts.append((time.monotonic(), await live.fences()))

    mongo.clock.step_to(seconds)
    counting = asyncio.create_task(count())
    try:
        yield
    except AssertionError as error:
        error.add_note(f"after the step to {seconds:+} s; leases: {_taken(counts)}")
        raise
    finally:
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)
    assert max(_taken(counts), default=0) <= HANDFUL, f"{seconds:+} s; leases: {_taken(counts)}"


def _taken(counts: list[tuple[float, int]]) -> list[float]:
    """Leases a second, between any two looks."""
    return [(taken - before) / (at - since) for (since, before), (at, taken) in pairwise(counts)]
