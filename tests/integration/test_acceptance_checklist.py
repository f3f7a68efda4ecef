"""The acceptance checklist of connectors, tokens and jobs: a test for every box."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from pymongo.errors import DuplicateKeyError

from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import RateLimited
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.settlement import WAIT_SPREAD_MS
from collector.jobs.states import State
from tests.support.local_collector import DAY, MINUTE, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


# -- One connector per exchange -------------------------------------------------------------------


async def test_db_unique_index_prevents_duplicates(database: Database) -> None:
    await ConnectorRegistry(database).ensure("binance", Limits(20, 1000))
    with pytest.raises(DuplicateKeyError):
        await database.raw["connectors"].insert_one({"exchange_id": "binance"})


async def test_create_connector_is_idempotent_and_returns_the_existing_one(
    database: Database,
) -> None:
    registry = ConnectorRegistry(database)
    first, made = await registry.ensure("binance", Limits(20, 1000))
    again, made_again = await registry.ensure("binance", Limits(1, 1))
    assert (made, made_again) == (True, False)
    assert again.document["_id"] == first.document["_id"]
    assert again.limits.rate_limit == 20


# -- Rate limiting per request --------------------------------------------------------------------


async def test_every_ccxt_request_calls_acquire_token_first(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        markets = await c.job("markets_refresh", symbol=None, timeframe=None)
        job = await c.backfill(c.first_ms + DAY)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        await c.until(markets, lambda job: job.document["stats"]["success"] >= 1)
        sent = len(c.exchange.journal.since())
        granted = (await c.registry.get("simulated")).document["granted_total"]
    assert sent == granted > 3


async def test_usage_never_exceeds_the_limit_within_a_window_under_concurrency(
    database: Database,
) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(15, 300))
    seen: list[int] = []

    async def spend(limiter: Limiter) -> None:
        for _ in range(15):
            with suppress(RateLimited):
                await limiter.acquire("x", patience=0.2)
            seen.append((await registry.get("x")).document["rate_limit_usage"])

    async with Limiter(database) as one, Limiter(database) as two:
        await asyncio.gather(*(spend(limiter) for limiter in (one, two) for _ in range(8)))
    assert max(seen) == 15


async def test_usage_resets_when_the_window_expires(database: Database) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(3, 1_000))
    async with Limiter(database) as limiter:
        # Together, so that they are in one window however slow the machine is.
        await asyncio.gather(*(limiter.acquire("x") for _ in range(3)))
        before = (await registry.get("x")).document
        await limiter.acquire("x", patience=5)
    after = (await registry.get("x")).document
    assert before["rate_limit_usage"] == 3 > after["rate_limit_usage"] >= 1
    assert after["rate_limit_window_start"] >= before["rate_limit_reset_at"]


# -- Resumable backfill ---------------------------------------------------------------------------


async def test_backfill_pauses_on_rate_limit_and_resumes_later_from_its_cursor(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, limits=Limits(3, 1_000)) as c:
        until = c.first_ms + 2 * DAY + 4 * 60 * MINUTE
        job = await c.backfill(until)
        waiting = await c.until(
            job, lambda job: job.state is State.WAITING and job.cursor.page >= 1
        )
        assert waiting.cursor.since_ms < until
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert done.cursor.since_ms == until
        starts = [entry.start_ms for entry in c.journal() if entry.limit != 1]
        assert sorted(starts) == sorted(set(starts)), "a page was fetched twice"
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_no_duplicate_candles(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        until = c.first_ms + DAY
        for _ in range(2):
            job = await c.backfill(until)
            await c.until(job, lambda job: job.state is State.SUCCESS)
            await c.queue.delete(job.id)
        times = [row[0] for row in c.stored(0, until)]
        assert len(times) == len(set(times)) == DAY // MINUTE
        table = c.store.rows(c.series, 0, until, columns=("ts", "ver"))
        assert set(table.column("ver").to_pylist()) == {1}


async def test_backfill_reaches_the_earliest_available_history(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        job = await c.backfill(c.first_ms + DAY)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, c.first_ms + DAY)[0][0] == c.first_ms


# -- Job scheduling and priorities ----------------------------------------------------------------


async def test_incremental_runs_at_timeframe_cadence(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=c.first_ms + 2 * DAY))
        runs: list[int] = []
        for number in range(1, 4):
            ran = await c.until(
                job,
                lambda job, n=number: job.document["stats"]["success"] >= n,  # type: ignore[misc]
            )
            runs.append(ran.next_run_at)
            await c.queue.run(job.id)
        closes = [run - run % MINUTE for run in runs]
        assert all(b - a in (0, MINUTE) for a, b in pairwise(closes))
        assert all(1_000 <= run % MINUTE <= 3_000 for run in runs)
        now = c.exchange.now_ms()
        assert c.stored(0, now)[-1][0] >= now - now % MINUTE - 2 * MINUTE


async def test_gap_backfill_preempts_incremental(database: Database) -> None:
    queue = JobQueue(database)
    await queue.add(JobSpec("x", "ohlcv_incremental", "A/B", "1m"))
    await queue.add(JobSpec("x", "ohlcv_backfill", "A/B", "1m", cursor=Cursor(until_ms=1)))
    await queue.add(JobSpec("x", "gap_backfill", "A/B", "1m", cursor=Cursor(0, MINUTE)))
    worker = Leasing(database, "ann")
    leased = [(await worker.claim("x"))[0].job.type for _ in range(3)]
    assert leased == ["gap_backfill", "ohlcv_incremental", "ohlcv_backfill"]


async def test_waiting_rate_limit_jobs_schedule_their_resume_at_the_reset(
    database: Database, tmp_path: Path
) -> None:
    # The window does not end before a slow machine has looked.
    async with collecting(database, tmp_path, limits=Limits(2, 30_000)) as c:
        job = await c.backfill(c.first_ms + 2 * DAY)
        waiting: Any = await c.until(job, lambda job: job.state is State.WAITING)
        connector = await c.registry.get("simulated")
        reset_at, window = connector.document["rate_limit_reset_at"], connector.all_windows[0]
        assert waiting.document["waiting_for"] == "window"
        # The window's margin and bins make it a little later than the plain reset, never earlier.
        latest = reset_at + window.margin_ms + window.bin_ms + WAIT_SPREAD_MS
        assert reset_at <= waiting.next_run_at <= latest
