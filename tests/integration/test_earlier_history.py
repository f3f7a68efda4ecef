"""An earlier `since` for a series that is collected already: what lies before is fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import LeaseLost
from collector.jobs.earlier import begins_ms, extend
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.recovery import recovered_job
from collector.jobs.states import State, Status
from collector.jobs.wishes import JobWish, job_record
from collector.operations.market_names import MarketNames
from collector.operations.shown.job import shown_job
from collector.operations.streams import SeriesRequest, keep_series
from collector.progress import slots_done
from tests.support.local_collector import DAY, MINUTE, SYMBOL, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

HISTORY = "ohlcv_backfill"
START = 1_735_689_600_000
UNTIL = START + 10 * DAY


def spec(since_ms: int) -> JobSpec:
    return JobSpec("simulated", HISTORY, SYMBOL, "1m", cursor=Cursor(since_ms, UNTIL))


async def kept(database: Database, since: int | None) -> Any:
    wanted = SeriesRequest("simulated", [SYMBOL], ["1m"], since)
    return await keep_series(database, wanted, MarketNames(database))


async def begun(database: Database, since_ms: int, at_ms: int) -> Job:
    """A job that a worker has brought to `at_ms` and not finished."""
    job, _ = await JobQueue(database).add(spec(since_ms))
    cursor = Cursor(at_ms, UNTIL, page=3).to_document()
    fields = {"cursor": cursor, "progress": {"from_ms": since_ms, "until_ms": UNTIL}}
    await database.jobs.update_one({"_id": job.id}, {"$set": {**fields, "state": "idle"}})
    return job


async def test_an_earlier_since_fetches_what_lies_before_and_nothing_twice(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, days=4) as c:
        since = c.first_ms + 2 * DAY
        first = await kept(database, since)
        job = next(job for job, _ in first.jobs if job.type == HISTORY)
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        until_ms = done.cursor.until_ms or 0
        asked_before = len(c.journal())

        again = await kept(database, c.first_ms + DAY)
        assert [job.id for job, _ in again.jobs] == [job.id for job, _ in first.jobs]
        assert "earlier history is fetched" in again.notes[0]
        await c.until(job, lambda job: job.state is State.SUCCESS and job.fence > done.fence + 1)
        asked = [each for each in c.journal()[asked_before:] if each.limit != 1]
        pages = [each for each in asked if each.start_ms < until_ms]
        assert pages
        assert max(each.start_ms for each in pages) < since, "stored bars were requested again"
        assert c.stored(0, until_ms) == c.truth(c.first_ms + DAY, until_ms)

        await kept(database, 0)  # from the first bar
        await c.until(job, lambda job: job.cursor.done and job.document["requested_since"] == 0)
        assert c.stored(0, until_ms) == c.truth(c.first_ms, until_ms)


async def test_a_later_since_changes_nothing_and_says_so(database: Database) -> None:
    await ConnectorRegistry(database).ensure("simulated", Limits(100, 1_000))
    now_ms = SystemClock().wall_ms()
    first = await kept(database, now_ms - 5 * DAY)
    later = await kept(database, now_ms - 3 * DAY)
    assert [job.document for job, _ in later.jobs] == [job.document for job, _ in first.jobs]
    (note,) = later.notes
    assert "a later one changes nothing" in note
    for unchanged in (now_ms - 5 * DAY, None):
        same = await kept(database, unchanged)
        assert same.notes == []
        assert [job.document for job, _ in same.jobs] == [job.document for job, _ in first.jobs]


async def test_what_is_not_begun_begins_earlier(database: Database) -> None:
    queue = JobQueue(database)
    await queue.add(spec(START + 5 * DAY))
    job = await extend(database, spec(START))
    assert job is not None
    assert job.cursor == Cursor(START, UNTIL)
    assert job.document["progress"]["ahead"] == []


async def test_a_run_under_way_loses_its_lease_and_its_cursor_is_kept(database: Database) -> None:
    job = await begun(database, START + 5 * DAY, START + 7 * DAY)
    leasing = Leasing(database, "ann")
    (lease,) = await leasing.claim("simulated")
    extended = await extend(database, spec(START))
    assert extended is not None
    assert (extended.state, extended.status) == (State.QUEUED, Status.ACTIVE)
    try:
        await leasing.commit(lease, Cursor(START + 8 * DAY, UNTIL, page=4))
    except LeaseLost:
        pass
    else:
        raise AssertionError("the old run moved the cursor")
    now = await JobQueue(database).get(job.id)
    assert now.cursor == Cursor(START, UNTIL)
    assert now.document["progress"]["ahead"] == [[START + 5 * DAY, START + 7 * DAY]]


async def test_an_extended_job_has_not_begun_whoever_looks(
    database: Database,
) -> None:
    await begun(database, START + 5 * DAY, START + 7 * DAY)
    extended = await extend(database, spec(START))
    assert extended is not None
    assert slots_done(shown_job(extended)) == (0, 0), "how much there is, its next run finds out"
    assert job_record(extended.document)["begins_ms"] is None, "a lost database would lose the rest"


async def test_a_job_that_an_operator_paused_stays_paused(database: Database) -> None:
    job = await begun(database, START + 5 * DAY, START + 7 * DAY)
    await JobQueue(database).pause(job.id)
    extended = await extend(database, spec(START))
    assert extended is not None
    assert (extended.state, extended.status) == (State.IDLE, Status.PAUSED)


async def test_a_second_extension_keeps_what_was_fetched_before_the_first(
    database: Database,
) -> None:
    await begun(database, START + 5 * DAY, START + 7 * DAY)
    await extend(database, spec(START + 2 * DAY))
    twice = await extend(database, spec(START))
    assert twice is not None
    assert twice.document["progress"]["ahead"] == [[START + 5 * DAY, START + 7 * DAY]]
    assert await extend(database, spec(START)) is None


async def test_a_job_of_an_older_program_is_extended_by_where_it_began(database: Database) -> None:
    job = await begun(database, START + 5 * DAY, START + 7 * DAY)
    await database.jobs.update_one({"_id": job.id}, {"$unset": {"requested_since": ""}})
    assert begins_ms(await JobQueue(database).get(job.id)) == START + 5 * DAY
    assert await extend(database, spec(START + 5 * DAY + MINUTE)) is None
    assert await extend(database, spec(START + 5 * DAY - MINUTE)) is not None


async def test_a_job_that_is_created_again_after_a_loss_keeps_where_it_was_to_begin(
    database: Database,
) -> None:
    job = await begun(database, START + 5 * DAY, START + 7 * DAY)
    wish = JobWish.read(job_record((await JobQueue(database).get(job.id)).document))
    await JobQueue(database).delete(job.id)
    cursor = Cursor(START + 7 * DAY, UNTIL, page=1)
    again, made = await JobQueue(database).add(recovered_job(wish, cursor))
    assert made
    assert again.document["requested_since"] == START + 5 * DAY
