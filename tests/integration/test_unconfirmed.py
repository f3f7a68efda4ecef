"""Open silences of jobs: reports and lag call them unconfirmed, and nothing waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS
from collector.jobs.counting import JobCounting
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.lag import reached
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.operations.census import census
from collector.operations.exchange_figures import exchange_figures
from collector.operations.trouble_facts import troubles_now
from collector.operations.waiting import Waiting
from collector.pipeline.evidence import LATEST_MS, Silence
from tests.support.mongo_profile import profiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.jobs.job import Job
    from collector.mongo.client import Database

LONG = 60
"""Minutes that the series of these tests are silent."""


def silence(from_ms: int, to_ms: int, first_at: int, due_ms: int = 0) -> Silence:
    return Silence(from_ms, to_ms, 1, first_at, first_at, from_ms, due_ms)


async def live(
    database: Database, symbol: str, since_ms: int, silences: Sequence[Silence] = ()
) -> Job:
    """The job of a live series that is stored up to a moment."""
    progress = {"silences": [each.document() for each in silences]} if silences else None
    cursor = Cursor(since_ms=since_ms, last_ts=since_ms - MINUTE_MS, page=9)
    spec = JobSpec("simulated", "ohlcv_incremental", symbol, "1m", cursor=cursor, progress=progress)
    job, _ = await JobQueue(database).add(spec)
    return job


async def minute_now(database: Database) -> int:
    return await database.now_ms() // MINUTE_MS * MINUTE_MS


@pytest.fixture
async def worked(database: Database) -> Database:
    """A database with a live worker and a connector."""
    await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
    await ConnectorRegistry(database).ensure("simulated", Limits(100_000, 1_000))
    return database


async def test_a_silent_live_series_is_unconfirmed_and_not_behind(worked: Database) -> None:
    now = await minute_now(worked)
    since = now - LONG * MINUTE_MS
    tail = [silence(since, now - 3 * MINUTE_MS, now - HOUR_MS)]
    await live(worked, "A/B", since, tail)
    await live(worked, "C/D", now - MINUTE_MS)
    [found] = await reached(worked)
    assert found.since_ms >= now - MINUTE_MS
    assert (found.unconfirmed, found.stale) == (1, 0)
    counts = await JobCounting(worked).count()
    assert [each.kind for each in await troubles_now(worked, counts)] == []
    lag = (await census(worked, counts)).lags["simulated"]
    assert (lag.bars <= 2, lag.unconfirmed) == (True, 1)
    [figures] = exchange_figures(counts)
    assert [(each.bars <= 2, each.unconfirmed) for each in figures.lags] == [(True, 1)]


async def test_a_series_that_is_behind_is_found_among_silent_ones(worked: Database) -> None:
    now = await minute_now(worked)
    for number in range(3):
        since = now - (LONG + number) * MINUTE_MS
        tail = [silence(since, now - 3 * MINUTE_MS, now - HOUR_MS)]
        await live(worked, f"S{number}/B", since, tail)
    late = now - 20 * MINUTE_MS
    await live(worked, "C/D", late)
    await live(worked, "E/F", now)
    async with profiled(worked) as statements:
        [found] = await reached(worked)
    assert found.since_ms == late
    assert found.stale == 1
    [trouble] = await troubles_now(worked, await JobCounting(worked).count())
    assert (trouble.kind.value, trouble.jobs) == ("stale", 1)
    assert sum(each["docsExamined"] for each in statements) == 3, "only those with silences"
    assert len(statements) <= 5


@pytest.mark.parametrize(
    ("ended_ago", "first_ago"),
    [(30 * MINUTE_MS, HOUR_MS), (3 * MINUTE_MS, LATEST_MS + HOUR_MS), (3 * MINUTE_MS, 10**12)],
    ids=["nobody asks any more", "reported days ago", "taken back"],
)
async def test_an_old_silence_does_not_hide_that_a_series_is_behind(
    worked: Database, ended_ago: int, first_ago: int
) -> None:
    now = await minute_now(worked)
    since = now - LONG * MINUTE_MS
    await live(worked, "A/B", since, [silence(since, now - ended_ago, now - first_ago)])
    [found] = await reached(worked)
    assert found.since_ms <= now - 25 * MINUTE_MS
    assert found.stale == 1
    [trouble] = await troubles_now(worked, await JobCounting(worked).count())
    assert trouble.kind.value == "stale"


async def test_a_silence_that_was_handed_over_in_part_is_still_unconfirmed(
    worked: Database,
) -> None:
    """A gap job owns its older half, and the cursor stays."""
    now = await minute_now(worked)
    rest = [silence(now - HOUR_MS, now - 3 * MINUTE_MS, now - HOUR_MS)]
    await live(worked, "A/B", now - DAY_MS, rest)
    [found] = await reached(worked)
    assert found.since_ms >= now - MINUTE_MS


async def gap_job(database: Database, first_run_ms: int | None = None) -> Job:
    cursor = Cursor(since_ms=MINUTE_MS, until_ms=2 * MINUTE_MS)
    job, _ = await JobQueue(database).add(
        JobSpec("simulated", "gap_backfill", "A/B", "1m", cursor=cursor, first_run_ms=first_run_ms)
    )
    return job


async def test_nobody_waits_for_a_gap_job_that_is_asked_later(worked: Database) -> None:
    now = await minute_now(worked)
    job = await gap_job(worked, now + HOUR_MS)

    async def never() -> None:
        pytest.fail("it waits for a job that runs in an hour")

    def shown(jobs: Sequence[Job], at_rest: int) -> None:
        assert (len(jobs), at_rest) == (1, 1)

    waiting = Waiting(worked, "simulated", max_retries=3, see_to_it=never, shown=shown)
    assert [each.id for each in await waiting.for_all([job.id])] == [job.id]


async def test_a_gap_job_that_is_due_is_waited_for(worked: Database) -> None:
    job = await gap_job(worked)
    looks = 0

    async def done() -> None:
        nonlocal looks
        looks += 1
        await JobQueue(worked).delete(job.id)

    waiting = Waiting(worked, "simulated", max_retries=3, see_to_it=done, shown=lambda *_: None)
    await waiting.for_all([job.id])
    assert looks == 1
