"""What a venue reports as empty is missing until a later run receives it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.backoff import Backoff
from collector.jobs.job import Cursor
from collector.jobs.settlement import ASKED_LATER
from collector.jobs.silences import LIVE_AGAIN_MS, LONG_AGAIN_MS, SAME_AGAIN_MS
from collector.jobs.states import State
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.simulated.faults.answers import Empty
from collector.simulated.faults.history import NoTrade
from tests.support.local_collector import (
    DAY,
    MINUTE,
    Collecting,
    asked_again_after,
    collecting,
    gap_jobs_at_rest,
    no_more_gap_jobs,
    put,
    scanned,
)
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))


def with_a_hole(c: Collecting, slots: int) -> Interval:
    """A day of bars less so many, which the exchange does not serve for now."""
    start = c.first_ms + 100 * MINUTE
    hole = Interval(start, start + slots * MINUTE)
    put(c, c.first_ms, hole.from_ms)
    put(c, hole.to_ms, c.first_ms + DAY)
    c.exchange.faults.add(Empty(once=False))
    return hole


def reasons(c: Collecting, from_ms: int, to_ms: int) -> set[str | None]:
    return set(c.store.rows(c.series, from_ms, to_ms).column("gap_reason").to_pylist())


async def ran_again(c: Collecting, job: Job) -> Job:
    """The job after one more run."""
    runs = (await c.queue.get(job.id)).document["stats"]["success"]
    await c.queue.run(job.id)
    return await c.until(job, lambda job: job.document["stats"]["success"] > runs)


async def test_two_empty_answers_in_one_run_settle_nothing(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        until = c.first_ms + 900 * MINUTE  # one page
        c.exchange.faults.add(Empty(once=False, count=2))
        job = await c.job(
            "ohlcv_backfill", cursor=Cursor(since_ms=c.first_ms, until_ms=until, page=1)
        )
        await c.until(job, lambda job: job.state is State.SUCCESS)
        await no_more_gap_jobs(c)
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_no_history_at_all_is_believed_when_a_later_run_hears_it_too(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        until = c.first_ms + DAY
        c.exchange.faults.add(Empty(once=False))
        job = await c.backfill(until)
        job = await c.until(job, lambda job: job.document["waiting_for"] == ASKED_LATER)
        assert (job.state, job.cursor.done) == (State.IDLE, False)
        c.exchange.faults.clear()
        await c.queue.run(job.id)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_a_gap_that_is_empty_is_settled_by_a_later_run(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        hole = with_a_hole(c, 30)
        await scanned(c)
        (gap,) = await gap_jobs_at_rest(c)
        assert (gap.state, gap.attempt, gap.document["stats"]["fail"]) == (State.IDLE, 0, 0)
        assert reasons(c, hole.from_ms, hole.to_ms) == {"missing"}
        await scanned(c)
        assert len(await c.queue.find({"type": "gap_backfill"})) == 1, "it owns its stretch"
        await ran_again(c, gap)
        assert reasons(c, hole.from_ms, hole.to_ms) == {"missing"}, "too soon after the first time"
        await asked_again_after(c, gap, SAME_AGAIN_MS)
        await no_more_gap_jobs(c)
        assert reasons(c, hole.from_ms, hole.to_ms) == {"no_trade"}


async def test_a_gap_that_was_empty_once_is_filled_by_a_later_run(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        with_a_hole(c, 30)
        await scanned(c)
        (gap,) = await gap_jobs_at_rest(c)
        c.exchange.faults.clear()
        await asked_again_after(c, gap, SAME_AGAIN_MS)
        await no_more_gap_jobs(c)
        assert c.stored(0, c.first_ms + DAY) == c.truth(c.first_ms, c.first_ms + DAY)


async def test_a_long_silence_of_a_market_that_trades_is_believed_days_later(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        hole = with_a_hole(c, 400)
        await scanned(c)
        (gap,) = await gap_jobs_at_rest(c)
        runs = gap.document["stats"]["success"]
        await asked_again_after(c, gap, SAME_AGAIN_MS)
        await c.until(gap, lambda job: job.document["stats"]["success"] > runs)
        (gap,) = await gap_jobs_at_rest(c)
        assert reasons(c, hole.from_ms, hole.to_ms) == {"missing"}
        await asked_again_after(c, gap, LONG_AGAIN_MS)
        await no_more_gap_jobs(c)
        assert reasons(c, hole.from_ms, hole.to_ms) == {"no_trade"}


async def test_a_gap_of_several_pages_is_mended_in_one_run(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        start, end = c.first_ms + 100 * MINUTE, c.first_ms + 2_700 * MINUTE
        put(c, c.first_ms, start)
        put(c, end, c.first_ms + 2 * DAY)
        job = await c.job("gap_backfill", cursor=Cursor(start, end))
        await no_more_gap_jobs(c)
        assert (await c.queue.get(job.id)).document["stats"]["success"] == 1
        assert c.stored(0, end) == c.truth(c.first_ms, end)


def quiet_since(c: Collecting, bars: int) -> int:
    """When the market stopped to trade, so many bars ago."""
    since: int = c.exchange.now_ms() // MINUTE * MINUTE - bars * MINUTE
    c.exchange.faults.add(NoTrade(spans=((since, since + 10 * DAY),)))
    return since


async def live(c: Collecting, since_ms: int, last_ts: int = 0) -> Job:
    cursor = Cursor(since_ms=since_ms, last_ts=last_ts, page=1)
    job = await c.job("ohlcv_incremental", cursor=cursor)
    return await c.until(job, lambda job: job.document["stats"]["success"] >= 1)


async def heard_earlier(c: Collecting, job: Job, ms: int) -> None:
    """As if the silences of the job's last run had been reported that much earlier."""
    told: Any = (await c.queue.get(job.id)).document["progress"]["silences"]
    earlier = [[from_ms, to_ms, first_ms - ms] for from_ms, to_ms, first_ms in told]
    await c.database.jobs.update_one({"_id": job.id}, {"$set": {"progress.silences": earlier}})


async def test_a_quiet_live_market_reads_no_trade_after_a_minute(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        since = quiet_since(c, 30)
        put(c, since - 60 * MINUTE, since - 5 * MINUTE)
        c.store.append_page(
            c.series,
            CandleBatch.empty(),
            Interval(since - 5 * MINUTE, since),
            fence=1,
            known_at=1,
        )
        job = await live(c, since + 5 * MINUTE)
        assert job.cursor.since_ms == since + 5 * MINUTE, "one empty answer settles nothing"
        await heard_earlier(c, job, LIVE_AGAIN_MS)
        before = len(c.journal())
        job = await ran_again(c, job)
        assert job.cursor.since_ms >= since + 25 * MINUTE
        assert len(c.journal()) == before + 1, "a quiet run is one request"
        assert reasons(c, since + 5 * MINUTE, job.cursor.since_ms) == {"no_trade"}


async def test_hours_of_silence_in_a_live_market_that_trades_are_not_settled_as_they_go(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        now = c.exchange.now_ms() // MINUTE * MINUTE
        last, at = now - 300 * MINUTE, now - 40 * MINUTE
        put(c, last - 500 * MINUTE, last)
        quiet = Interval(last, at)
        c.store.append_page(c.series, CandleBatch.empty(), quiet, fence=1, known_at=1)
        c.exchange.faults.add(Empty(once=False))
        job = await live(c, at, last - MINUTE)
        job = await ran_again(c, job)
        assert job.cursor.since_ms == at
        assert not (job.document["progress"] or {}).get("silences")
        c.exchange.faults.clear()
        job = await ran_again(c, job)
        assert job.cursor.since_ms >= now
        assert c.stored(last, now) == c.truth(last, now), "also what was settled of the silence"


async def test_after_days_a_silent_live_market_is_believed(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, days=5, config=CONFIG) as c:
        now = c.exchange.now_ms() // MINUTE * MINUTE
        last, at = now - 3 * DAY - 10 * MINUTE, now - 40 * MINUTE
        put(c, last - 500 * MINUTE, last)
        c.exchange.faults.add(Empty(once=False))
        job = await live(c, at, last - MINUTE)
        await heard_earlier(c, job, LIVE_AGAIN_MS)
        job = await ran_again(c, job)
        assert job.cursor.since_ms > at
