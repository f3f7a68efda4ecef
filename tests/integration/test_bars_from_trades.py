"""`ohlcv_from_trades`: bars made of trades are the bars the exchange would tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.connectors.connector import Limits
from collector.jobs.job import Cursor
from collector.jobs.states import State, Status
from collector.simulated.faults.answers import ServerError
from tests.support.local_collector import DAY, MINUTE, Collecting, collecting
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
HOUR = 60 * MINUTE


async def made(c: Collecting, since_ms: int, until_ms: int) -> Job:
    job = await c.job("ohlcv_from_trades", cursor=Cursor(since_ms=since_ms, until_ms=until_ms))
    return await c.until(job, lambda job: job.state is State.SUCCESS)


def assert_true(c: Collecting, from_ms: int, to_ms: int) -> None:
    stored, truth = c.stored(from_ms, to_ms), c.truth(from_ms, to_ms)
    assert [row[:5] for row in stored] == [row[:5] for row in truth]
    assert [row[5] for row in stored] == pytest.approx([row[5] for row in truth])


def sources(c: Collecting, from_ms: int, to_ms: int) -> set[Any]:
    return set(c.store.rows(c.series, from_ms, to_ms).column("source").to_pylist())


async def test_made_bars_equal_the_truth_and_say_what_they_are_made_of(
    database: Database, tmp_path: Path
) -> None:
    faults = (ServerError(endpoint="aggTrades", count=2, probability=0.4),)
    async with collecting(database, tmp_path, faults=faults, config=CONFIG) as c:
        done = await made(c, c.first_ms - 300 * DAY, c.first_ms + 2 * HOUR)
        assert done.status is Status.PAUSED
        assert done.cursor.done
        assert_true(c, c.first_ms, c.first_ms + 2 * HOUR)
        assert sources(c, c.first_ms, c.first_ms + 2 * HOUR) == {"simulated:trades"}
        assert not c.stored(0, c.first_ms)


async def test_bars_that_the_exchange_told_stay_its_own(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        border, end = c.first_ms + HOUR, c.first_ms + 2 * HOUR
        told = await c.job("gap_backfill", cursor=Cursor(since_ms=border, until_ms=end))
        await c.until(told, lambda job: job.status is Status.DELETED)
        done = await made(c, c.first_ms, end)
        assert done.cursor.since_ms == border
        assert_true(c, c.first_ms, end)
        assert sources(c, c.first_ms, border) == {"simulated:trades"}
        assert sources(c, border, end) == {"simulated"}


async def test_a_spent_budget_keeps_the_bars_that_are_whole(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, limits=Limits(6, HOUR), config=CONFIG) as c:
        cursor = Cursor(since_ms=c.first_ms, until_ms=c.first_ms + DAY)
        job = await c.job("ohlcv_from_trades", cursor=cursor)
        waiting = await c.until(job, lambda job: job.state is State.WAITING)
        reached = waiting.cursor.since_ms
        assert c.first_ms < reached < c.first_ms + DAY
        assert_true(c, c.first_ms, reached)
        assert not c.stored(reached, c.first_ms + DAY)


async def test_the_present_is_waited_for_and_not_asked_for_again_and_again(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        now = c.exchange.now_ms()
        since = now - now % MINUTE - 5 * MINUTE
        cursor = Cursor(since_ms=since, until_ms=since + HOUR)
        job = await c.job("ohlcv_from_trades", cursor=cursor)
        waiting = await c.until(
            job, lambda job: "not completed" in (job.document["stats"]["last_error"] or "")
        )
        assert len(c.journal("/api/v3/aggTrades")) < 10
        assert waiting.cursor.since_ms > since
        assert_true(c, since, waiting.cursor.since_ms)
