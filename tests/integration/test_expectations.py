"""Where the calendars of series should begin and end, as jobs and listings tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.jobs.freezing import Freezing, Frozen
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.series import Series
from collector.reports.expectations import expectations
from collector.reports.expected import LATE_MS, Expected

if TYPE_CHECKING:
    from collector.mongo.client import Database

NOW = 1_735_689_600_000
LISTED = NOW - 10**10
BTC = Series.of("binance", "BTC/USDT", "1m")


async def add_job(database: Database, kind: str, cursor: Cursor, tf: str = "1m") -> Any:
    job, _ = await JobQueue(database).add(JobSpec("binance", kind, "BTC/USDT", tf, cursor=cursor))
    return job


async def add_market(database: Database, **fields: Any) -> None:
    market = {"exchange_id": "binance", "symbol": "BTC/USDT", "active": True, **fields}
    await database.markets.insert_many([market])


async def expected(database: Database, tf: str = "1m") -> Expected:
    series = Series.of("binance", "BTC/USDT", tf)
    return (await expectations(database, [series], NOW))[series]


async def test_without_jobs_the_files_alone_tell_the_start(database: Database) -> None:
    other = Series.of("kraken", "ETH/EUR", "1h")
    found = await expectations(database, [BTC, other], NOW)
    assert found == {each: Expected(None, NOW - LATE_MS) for each in (BTC, other)}


async def test_a_backfill_that_has_not_begun_says_since_when(database: Database) -> None:
    await add_job(database, "ohlcv_backfill", Cursor(since_ms=NOW - 5000, until_ms=NOW))
    assert (await expected(database)).from_ms == NOW - 5000
    await add_market(database, listed_ms=NOW - 4000)
    assert (await expected(database)).from_ms == NOW - 4000, "it was not listed before"


async def test_a_backfill_from_the_first_bar_begins_with_the_listing(database: Database) -> None:
    await add_job(database, "ohlcv_backfill", Cursor(until_ms=NOW))
    assert (await expected(database)).from_ms is None
    await add_market(database, listed_ms=LISTED)
    assert (await expected(database)).from_ms == LISTED


async def test_a_backfill_that_began_remembers_where(database: Database) -> None:
    """Its cursor has moved on since."""
    job = await add_job(database, "ohlcv_backfill", Cursor(since_ms=NOW - 900, until_ms=NOW))
    begun = {"$set": {"progress": {"from_ms": NOW - 7000}, "cursor.done": True}}
    await database.jobs.update_one({"_id": job.id}, begun)
    await add_market(database, listed_ms=NOW - 100)
    assert (await expected(database)).from_ms == NOW - 7000


async def test_longer_bars_begin_where_the_shorter_ones_do(database: Database) -> None:
    await add_job(database, "ohlcv_backfill", Cursor(since_ms=NOW - 5000, until_ms=NOW))
    await add_job(database, "ohlcv_backfill", Cursor(since_ms=NOW - 90, until_ms=NOW), "5m")
    assert (await expected(database, "15m")).from_ms == NOW - 5000
    assert (await expected(database, "1m")).from_ms == NOW - 5000
    assert (await expected(database, "30s")).from_ms is None


async def test_deleted_jobs_ask_for_nothing(database: Database) -> None:
    job = await add_job(database, "ohlcv_backfill", Cursor(since_ms=NOW - 5000, until_ms=NOW))
    await JobQueue(database).delete(job.id)
    assert (await expected(database)).from_ms is None


async def test_a_delisted_market_ends_when_it_left(database: Database) -> None:
    await add_market(database, active=False, delisted_at=NOW - 9000)
    assert await expected(database) == Expected(None, min(NOW - 9000, NOW - LATE_MS), False)


@pytest.mark.parametrize("reason", list(Frozen))
async def test_a_series_that_was_ended_ends_with_its_files(
    database: Database, reason: Frozen
) -> None:
    await add_job(database, "ohlcv_incremental", Cursor(since_ms=NOW - 5000))
    await add_market(database, active=False, delisted_at=NOW - 10**9)
    assert (await expected(database)).to_ms == NOW - 10**9
    await Freezing(database).freeze("binance", "BTC/USDT", reason, "gone")
    assert await expected(database) == Expected(None, None, is_listed=False)
