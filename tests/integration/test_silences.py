"""What a venue reports as empty is missing until the evidence suffices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.backoff import Backoff
from collector.jobs.job import Cursor
from collector.jobs.settlement import ASKED_LATER
from collector.jobs.states import State
from collector.jobs.unconfirmed import silences_of
from collector.market.interval import Interval
from collector.pipeline.evidence import LATEST_MS, SOONEST_MS
from collector.simulated.faults.answers import Empty
from collector.simulated.faults.history import NoTrade
from collector.simulated.faults.pages import Stale
from tests.support.local_collector import (
    DAY,
    MINUTE,
    Collecting,
    asked_again_after,
    collecting,
    gap_jobs_at_rest,
    heard_earlier,
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


def with_a_hole(c: Collecting, slots: int, *, ago: int = DAY) -> Interval:
    """A day of bars less so many, in which nothing was traded."""
    first = c.exchange.now_ms() // MINUTE * MINUTE - ago
    start = first + 100 * MINUTE
    hole = Interval(start, start + slots * MINUTE)
    c.exchange.faults.add(NoTrade(spans=((hole.from_ms, hole.to_ms),)))
    put(c, first - 600 * MINUTE, hole.from_ms)
    put(c, hole.to_ms, first + DAY - 10 * MINUTE)
    return hole


def reasons(c: Collecting, hole: Interval) -> set[str | None]:
    table = c.store.rows(c.series, hole.from_ms, hole.to_ms)
    return set(table.column("gap_reason").to_pylist())


async def ran_again(c: Collecting, job: Job) -> Job:
    """The job after one more run."""
    runs = (await c.queue.get(job.id)).document["stats"]["success"]
    await c.queue.run(job.id)
    return await c.until(job, lambda job: job.document["stats"]["success"] > runs)


async def test_empty_answers_in_one_run_settle_nothing(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        until = c.first_ms + 900 * MINUTE  # one page
        c.exchange.faults.add(Empty(once=False, count=3))
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


async def test_a_short_gap_is_settled_by_two_answers_at_once(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        hole = with_a_hole(c, 5, ago=DAY)
        before = len(c.journal())
        await scanned(c)
        await no_more_gap_jobs(c)
        assert reasons(c, hole) == {"no_trade"}
        assert len(c.journal()) == before + 2


async def test_a_long_gap_of_a_busy_market_waits_as_long_as_its_rows_would_take(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        hole = with_a_hole(c, 300)
        await scanned(c)
        (gap,) = await gap_jobs_at_rest(c)
        assert (gap.state, gap.attempt, gap.document["stats"]["fail"]) == (State.IDLE, 0, 0)
        assert reasons(c, hole) == {"missing"}
        await scanned(c)
        assert len(await c.queue.find({"type": "gap_backfill"})) == 1, "it owns its range"
        gap = await ran_again(c, gap)
        assert reasons(c, hole) == {"missing"}, "too soon after the first time"
        [silence] = silences_of(gap.document["progress"])
        wait_ms = silence.due_ms - silence.first_at
        assert 290 * MINUTE <= wait_ms <= 310 * MINUTE
        await asked_again_after(c, gap, wait_ms + SOONEST_MS)
        await no_more_gap_jobs(c)
        assert reasons(c, hole) == {"no_trade"}


async def test_a_gap_that_was_empty_for_a_while_is_filled_by_a_later_run(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        hole = with_a_hole(c, 30)
        await scanned(c)
        (gap,) = await gap_jobs_at_rest(c)
        c.exchange.faults.clear()
        await ran_again(c, gap)
        await no_more_gap_jobs(c)
        assert reasons(c, hole) == {None}
        assert c.stored(hole.from_ms, hole.to_ms) == c.truth(hole.from_ms, hole.to_ms)


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


async def test_a_halt_in_a_backfill_gets_a_job_that_knows_what_was_heard(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        start = c.first_ms + 300 * MINUTE
        c.exchange.faults.add(NoTrade(spans=((start, start + 100 * MINUTE),)))
        job = await c.backfill(c.first_ms + DAY)
        job = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert not job.document["progress"].get("silences")
        (gap,) = await gap_jobs_at_rest(c)
        assert (gap.cursor.since_ms, gap.cursor.until_ms) == (start, start + 100 * MINUTE)
        [silence] = silences_of(gap.document["progress"])
        assert silence.heard == 1
        assert gap.next_run_at == silence.due_ms
        asked = len(c.journal())
        await asked_again_after(c, gap, LATEST_MS)
        await no_more_gap_jobs(c)
        assert len(c.journal()) == asked + 1
        assert reasons(c, Interval(start, start + 100 * MINUTE)) == {"no_trade"}


async def test_a_backfill_does_not_wait_for_a_young_minute_without_a_bar(
    database: Database, tmp_path: Path
) -> None:
    """It may be late, or there was no trade: a gap job asks again in a few minutes."""
    async with collecting(database, tmp_path, config=CONFIG) as c:
        until = c.exchange.now_ms() // MINUTE * MINUTE
        start = until - 2 * MINUTE
        c.exchange.faults.add(NoTrade(spans=((start, until),)))
        job = await c.job("ohlcv_backfill", cursor=Cursor(until - DAY, until, page=1))
        job = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert job.document["stats"]["fail"] == 0
        (gap,) = await gap_jobs_at_rest(c)
        [silence] = silences_of(gap.document["progress"])
        assert (silence.interval, silence.heard) == (Interval(start, until), 0)
        assert gap.next_run_at == silence.due_ms


async def live(c: Collecting, since_ms: int, last_ts: int) -> Job:
    cursor = Cursor(since_ms=since_ms, last_ts=last_ts, page=1)
    job = await c.job("ohlcv_incremental", cursor=cursor)
    return await c.until(job, lambda job: job.document["stats"]["success"] >= 1)


def followed(c: Collecting, silent: int) -> int:
    """A series that was followed until so many minutes ago; when its last bar ended."""
    end: int = c.exchange.now_ms() // MINUTE * MINUTE - silent * MINUTE
    put(c, end - 800 * MINUTE, end)
    return end


async def test_twelve_minutes_without_answers_are_not_twelve_without_trades(
    database: Database, tmp_path: Path
) -> None:
    for fault in (Empty(once=False), Stale(minutes=14)):
        root = tmp_path / fault.kind
        async with collecting(database, root, config=CONFIG) as c:
            end = followed(c, 12)
            (number,) = c.exchange.faults.add(fault)
            job = await live(c, end, end - MINUTE)
            for _ in range(3):
                job = await ran_again(c, job)
            assert job.cursor.since_ms == end
            assert c.store.covered(c.series)[-1].to_ms == end
            c.exchange.faults.remove(number)
            job = await ran_again(c, job)
            now = job.cursor.since_ms
            assert now >= end + 10 * MINUTE
            assert c.stored(end, now) == c.truth(end, now)
            assert reasons(c, Interval(end, now)) == {None}
            await c.queue.delete(job.id)


async def test_a_market_that_falls_silent_is_unconfirmed_and_one_request_a_run(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        end = followed(c, 40)
        c.exchange.faults.add(NoTrade(spans=((end, end + 10 * DAY),)))
        job = await live(c, end, end - MINUTE)
        before = len(c.journal())
        job = await ran_again(c, job)
        assert len(c.journal()) == before + 1
        assert job.cursor.since_ms == end
        (silence,) = job.document["progress"]["silences"]
        assert silence[0] == end
        await heard_earlier(c, job, SOONEST_MS)
        job = await ran_again(c, job)
        assert job.cursor.since_ms == end, "forty rows were expected"
        await heard_earlier(c, job, LATEST_MS)
        job = await ran_again(c, job)
        assert job.cursor.since_ms > end + 30 * MINUTE
        assert reasons(c, Interval(end, job.cursor.since_ms)) == {"no_trade"}


async def test_the_first_row_after_an_outage_contradicts_what_was_settled_of_it(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        end = followed(c, 40)
        (number,) = c.exchange.faults.add(NoTrade(spans=((end, end + 10 * DAY),)))
        job = await live(c, end, end - MINUTE)
        await heard_earlier(c, job, LATEST_MS)
        job = await ran_again(c, job)
        settled = job.cursor.since_ms
        assert settled > end
        c.exchange.faults.remove(number)
        job = await ran_again(c, job)
        await no_more_gap_jobs(c)
        assert c.stored(end, settled) == c.truth(end, settled)


async def test_a_live_series_passes_what_was_stored_before_its_cursor_moved(
    database: Database, tmp_path: Path
) -> None:
    """A worker may die between the write of a page and the statement that moves the cursor."""
    async with collecting(database, tmp_path, config=CONFIG) as c:
        now = c.exchange.now_ms() // MINUTE * MINUTE
        since, hole = now - 3_000 * MINUTE, now - 2_500 * MINUTE
        c.exchange.faults.add(NoTrade(spans=((hole, hole + 2 * MINUTE),)))
        put(c, since - 800 * MINUTE, now - 1_500 * MINUTE)
        job = await live(c, since, since - MINUTE)
        assert job.cursor.since_ms >= now
        assert c.stored(since, now) == c.truth(since, now)


async def test_a_thin_market_is_asked_about_many_pages_at_a_time(
    database: Database, tmp_path: Path
) -> None:
    """The first pages show how many slots an answer fills; none is asked ahead before that."""
    async with collecting(database, tmp_path, days=41, config=CONFIG) as c:
        c.exchange.faults.add(NoTrade(ratio=0.95))
        job = await c.backfill(c.first_ms + 40 * DAY)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, c.first_ms + 40 * DAY) == c.truth(c.first_ms, c.first_ms + 40 * DAY)
        assert len(c.journal()) <= 20, "for 58 pages of slots"
