"""Where the calendars of series should begin and end, as jobs and listings tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS
from collector.jobs.freezing import Freezing, Frozen
from collector.jobs.gap_jobs import missing
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.interval import Interval
from collector.market.series import Series
from collector.pipeline.evidence import LATEST_MS, Silence
from collector.reports.expectations import expectations, expected_ranges
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


# Open silences


def silence(from_ms: int, to_ms: int, first_at: int = NOW, due_ms: int = 0) -> Silence:
    return Silence(from_ms, to_ms, 1, first_at, first_at, from_ms, due_ms)


async def add_silences(
    database: Database, kind: str, silences: list[Silence], tf: str = "1m", **fields: Any
) -> Any:
    cursor = Cursor(since_ms=NOW - DAY_MS, until_ms=NOW)
    job = await add_job(database, kind, cursor, tf)
    kept = {"progress.silences": [each.document() for each in silences], **fields}
    await database.jobs.update_one({"_id": job.id}, [{"$set": kept}])
    return job


@pytest.mark.parametrize("kind", ["gap_backfill", "ohlcv_backfill"])
async def test_open_silences_of_jobs_are_unconfirmed(database: Database, kind: str) -> None:
    first = silence(NOW - 9 * HOUR_MS, NOW - 8 * HOUR_MS, due_ms=NOW + HOUR_MS)
    second = silence(NOW - 5 * HOUR_MS, NOW - 4 * HOUR_MS)
    await add_silences(database, kind, [first, second], next_run_at=NOW + MINUTE_MS)
    found = await expected(database)
    assert [each.interval for each in found.unconfirmed] == [first.interval, second.interval]
    assert found.asked_again_ms(first.interval) == NOW + HOUR_MS
    assert found.asked_again_ms(second.interval) == NOW + MINUTE_MS, "when its job runs"
    assert found.asked_again_ms(Interval(1, 2)) is None


async def test_the_silent_end_of_a_live_series_reaches_over_the_slots_too_young_to_tell(
    database: Database,
) -> None:
    end = NOW - 3 * MINUTE_MS
    silences = [silence(NOW - HOUR_MS, end - MINUTE_MS), silence(end - MINUTE_MS, end)]
    await add_silences(database, "ohlcv_incremental", silences)
    found = await expected(database)
    frame = BTC.timeframe
    assert found.unconfirmed_slots(frame) == (Interval(NOW - HOUR_MS, NOW),)


async def test_a_silence_is_unconfirmed_for_three_days(database: Database) -> None:
    young = silence(1, 2, first_at=NOW - LATEST_MS)
    old, taken_back = silence(3, 4, first_at=NOW - LATEST_MS - 1), silence(5, 6, first_at=0)
    await add_silences(database, "gap_backfill", [young, old, taken_back])
    assert [each.interval for each in (await expected(database)).unconfirmed] == [young.interval]


async def test_a_paused_job_does_not_ask_and_a_deleted_one_knows_nothing(
    database: Database,
) -> None:
    heard = silence(NOW - HOUR_MS, NOW, due_ms=NOW + HOUR_MS)
    job = await add_silences(database, "gap_backfill", [heard])
    await JobQueue(database).pause(job.id)
    found = await expected(database)
    assert len(found.unconfirmed) == 1
    assert found.asked_again_ms(heard.interval) is None
    await JobQueue(database).delete(job.id)
    assert (await expected(database)).unconfirmed == ()


async def test_longer_bars_are_silent_with_the_shorter_ones(database: Database) -> None:
    minutes, hours = silence(NOW - HOUR_MS, NOW), silence(NOW - 9 * HOUR_MS, NOW - 8 * HOUR_MS)
    await add_silences(database, "gap_backfill", [minutes])
    await add_silences(database, "gap_backfill", [hours], "1h")
    found = {each.interval for each in (await expected(database, "1h")).unconfirmed}
    assert found == {minutes.interval, hours.interval}
    assert [each.interval for each in (await expected(database)).unconfirmed] == [minutes.interval]


# Ranges that jobs have left behind them


async def add_range(database: Database, *, begun_ms: int | None, reached_ms: int) -> None:
    """A job for new bars, and a backfill that has begun where it is given."""
    await add_job(database, "ohlcv_incremental", Cursor(since_ms=reached_ms, page=3))
    if begun_ms is not None:
        done = Cursor(since_ms=NOW, until_ms=NOW, page=7, done=True)
        job = await add_job(database, "ohlcv_backfill", done)
        begun = {"$set": {"progress": {"from_ms": begun_ms}}}
        await database.jobs.update_one({"_id": job.id}, begun)


async def test_a_range_reaches_from_the_first_bar_to_the_cursor_of_new_bars(
    database: Database,
) -> None:
    reached = NOW + HOUR_MS
    await add_range(database, begun_ms=NOW - DAY_MS + 1, reached_ms=reached + 1)
    hours = Series.of("binance", "BTC/USDT", "1h")
    found = await expected_ranges(database, [hours, BTC])
    assert found == {BTC: Interval(NOW - DAY_MS + MINUTE_MS, reached)}, "on the grid"


async def test_what_is_lost_at_head_and_tail_is_found(database: Database) -> None:
    await add_range(database, begun_ms=NOW - DAY_MS, reached_ms=NOW)
    whole = (await expected_ranges(database, [BTC]))[BTC]
    left = [Interval(NOW - 9 * HOUR_MS, NOW - 2 * HOUR_MS)]
    assert missing(left, (), whole) == (
        Interval(NOW - DAY_MS, NOW - 9 * HOUR_MS),
        Interval(NOW - 2 * HOUR_MS, NOW),
    )
    assert missing((), (), whole) == (whole,), "also when all files are gone"


async def test_without_a_history_a_range_begins_where_new_bars_were_first_fetched(
    database: Database,
) -> None:
    made_ms = await database.now_ms()
    start = BTC.timeframe.ceil(made_ms)
    await add_range(database, begun_ms=None, reached_ms=start)
    assert await expected_ranges(database, [BTC]) == {}, "nothing was fetched since"
    later = {"$set": {"cursor.since_ms": start + HOUR_MS}}
    await database.jobs.update_one({"type": "ohlcv_incremental"}, later)
    found = (await expected_ranges(database, [BTC]))[BTC]
    assert start <= found.from_ms <= start + MINUTE_MS
    assert found.to_ms == start + HOUR_MS


async def test_a_backfill_that_has_not_begun_claims_nothing_yet(database: Database) -> None:
    await add_job(database, "ohlcv_backfill", Cursor(since_ms=NOW - DAY_MS, until_ms=NOW))
    assert await expected_ranges(database, [BTC]) == {}


async def test_nothing_is_fetched_of_a_market_that_is_gone(database: Database) -> None:
    await add_range(database, begun_ms=NOW - DAY_MS, reached_ms=NOW)
    await add_market(database, active=False, delisted_at=NOW)
    assert await expected_ranges(database, [BTC]) == {}
