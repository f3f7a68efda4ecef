"""What unfinished jobs still have before them: asked of the database for the series in question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bson import ObjectId

from collector.jobs import fetching
from collector.jobs.fetching import owned
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.interval import Interval
from collector.market.series import Series
from migrations import runner
from tests.support.mongo_profile import profiled

if TYPE_CHECKING:
    import pytest

    from collector.mongo.client import Database

BTC, ETH = Series.of("x", "BTC/USDT", "1m"), Series.of("x", "ETH/USDT", "1h")
MINUTE = 60_000


def job(kind: str, series: Series, since: int, until: int | None) -> JobSpec:
    cursor = Cursor(since_ms=since, until_ms=until)
    return JobSpec(series.exchange_id, kind, series.symbol, series.timeframe.name, cursor=cursor)


async def test_unfinished_backfills_and_gap_jobs_own_what_is_before_them(
    database: Database,
) -> None:
    queue = JobQueue(database)
    paused, _ = await queue.add(job("ohlcv_backfill", BTC, 100, 500))
    await queue.pause(paused.id)
    await queue.add(job("gap_backfill", BTC, 700, 800))
    gone, _ = await queue.add(job("gap_backfill", BTC, 900, 950))
    await queue.delete(gone.id)
    done, _ = await queue.add(job("ohlcv_backfill", ETH, 100, 500))
    await database.jobs.update_one({"_id": done.id}, {"$set": {"cursor.done": True}})
    await queue.add(job("gap_backfill", ETH, 600, 600))
    await queue.add(job("ohlcv_incremental", ETH, 600, None))
    await queue.add(job("gap_backfill", Series.of("y", "BTC/USDT", "1m"), 1, 2))
    await queue.add(job("gap_backfill", Series.of("x", "BTC/USDT", "5m"), 3, 4))
    found = await owned(database, "x", [BTC, ETH])
    assert sorted(found.pop(("BTC/USDT", "1m"))) == [Interval(100, 500), Interval(700, 800)]
    assert found == {("BTC/USDT", "5m"): [Interval(3, 4)]}


async def test_only_the_series_in_question_are_asked_for_and_little_is_read_at_a_time(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.up(empty_database)
    monkeypatch.setattr(fetching, "DECODED_AT_ONCE", 50)
    made, _ = await JobQueue(empty_database).add(job("gap_backfill", BTC, 0, MINUTE))
    copies = [
        {
            **made.document,
            "_id": ObjectId(),
            "unique_key": str(number),
            "symbol": "BTC/USDT" if number < 300 else f"C{number}/USDT",
            "status": "deleted" if number % 3 == 0 else "active",
        }
        for number in range(3_000)
    ]
    await empty_database.jobs.insert_many(copies)
    async with profiled(empty_database) as seen:
        found = await owned(empty_database, "x", [BTC])
    assert len(found["BTC/USDT", "1m"]) == 201
    assert max(each["nreturned"] for each in seen) <= 50
    assert sum(each["docsExamined"] for each in seen) == 201
    assert sum(each["keysExamined"] for each in seen) <= 210
    # Names and stretches; a whole job is ten times as long.
    assert sum(each["responseLength"] for each in seen) < 201 * 200
