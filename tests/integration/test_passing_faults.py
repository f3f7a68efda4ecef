"""One bad answer costs one page: what passes by itself ends no run and pauses no job."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from collector.backoff import Backoff
from collector.connectors.connector import Limits
from collector.durations import HOUR_MS
from collector.jobs.job import Cursor
from collector.jobs.runs import RunHistory
from collector.jobs.states import State, Status
from collector.simulated.faults.answers import Html, Reset, ServerError, TooManyRequests
from collector.store.port import StorageFault
from collector.store.root import storage_at
from tests.support.local_collector import DAY, collecting
from tests.support.until import until
from workers.runtime import WorkerConfig
from workers.tries import Tries

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.local_collector import Collecting

QUICK = Tries(most=5, base_seconds=0.01)
NEVER_AGAIN = Backoff(600, 600)
"""A run that ends is not begun again within a test."""


async def runs_of(c: Collecting, job: Job, *, ended: int = 1) -> list[dict[str, Any]]:
    """The history of a job, once that many of its runs are written."""

    async def written() -> list[dict[str, Any]]:
        found = await RunHistory(c.database).of(job.id)
        return found if len(found) >= ended else []

    found: list[dict[str, Any]] = await until(written, f"{ended} runs are written")
    return found


async def test_pages_that_fail_in_passing_are_asked_again_inside_the_run(
    database: Database, tmp_path: Path
) -> None:
    config = WorkerConfig("ann", poll_seconds=0.2, retry=NEVER_AGAIN, tries=QUICK)
    faults = tuple(kind(probability=0.05) for kind in (ServerError, Reset, Html))
    async with collecting(database, tmp_path, days=20, config=config, faults=faults) as c:
        until = c.first_ms + 19 * DAY
        job = await c.backfill(until)
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        (run,) = await runs_of(c, job)
        good = [
            entry for entry in c.journal() if entry.status == 200 and "html" not in entry.faults
        ]
        assert len(c.journal()) > len(good), "nothing failed"
        assert c.stored(0, until) == c.truth(c.first_ms, until)
    assert done.attempt == 0
    assert run["pages"] == done.cursor.page - 1
    assert run["tokens"] >= len(c.journal())


async def test_the_history_of_runs_counts_every_page_once(
    database: Database, tmp_path: Path
) -> None:
    """Pages that finish while a cursor is being committed are no broken line."""
    async with collecting(database, tmp_path, days=40) as c:
        until = c.first_ms + 39 * DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        runs = await runs_of(c, job)
        asked = [entry for entry in c.journal() if entry.interval == "1m" and entry.limit != 1]
        assert sum(run["pages"] for run in runs) == len(asked)
        assert {run["outcome"] for run in runs} == {"done"}


async def test_only_when_its_tries_are_spent_does_a_page_end_the_run(
    database: Database, tmp_path: Path
) -> None:
    config = WorkerConfig("ann", poll_seconds=0.2, retry=NEVER_AGAIN, tries=QUICK)
    async with collecting(database, tmp_path, config=config) as c:
        c.exchange.faults.add(ServerError(endpoint="klines", count=QUICK.most))
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=c.first_ms))
        waiting = await c.until(job, lambda job: job.document["waiting_for"] == "retry")
        assert len(c.journal()) == QUICK.most
        assert waiting.attempt == 1
        assert waiting.status is Status.ACTIVE


async def test_progress_sets_the_count_of_failures_back(database: Database, tmp_path: Path) -> None:
    config = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.02, 0.02), tries=Tries(most=1))
    async with collecting(database, tmp_path, days=20, config=config) as c:
        seen: list[int] = []
        c.exchange.faults.add(ServerError(endpoint="klines", probability=0.2))
        job = await c.backfill(c.first_ms + 19 * DAY)

        def finished(job: Job) -> bool:
            seen.append(job.attempt)
            return job.state is State.SUCCESS

        done = await c.until(job, finished)
        failed = done.document["stats"]["fail"]
        assert failed > 1, "nothing failed"
        assert max(seen) < failed, "failures were counted although the cursor moved"


async def test_a_pause_between_two_tries_ends_when_the_worker_drains(
    database: Database, tmp_path: Path
) -> None:
    config = WorkerConfig(
        "ann", poll_seconds=0.2, tries=Tries(most=9, base_seconds=1e6, max_seconds=1e6)
    )
    async with collecting(database, tmp_path, config=config) as c:
        c.exchange.faults.add(ServerError(endpoint="klines"))
        job = await c.backfill(c.first_ms + DAY)
        await until(c.journal, "the exchange was asked")
    # The block above ends with a drain, which would wait for a pause of days.
    assert (await c.queue.get(job.id)).state is State.QUEUED


async def test_a_429_stops_the_run_at_once(database: Database, tmp_path: Path) -> None:
    """Nothing is tried again before the exchange said so, or a person knows better."""
    config = WorkerConfig("ann", poll_seconds=0.2, tries=QUICK)
    async with collecting(database, tmp_path, days=20, config=config) as c:
        c.exchange.faults.add(TooManyRequests(endpoint="klines", count=1, retry_after_s=3_600))
        until = c.first_ms + 19 * DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.document["waiting_for"] == "retry")
        await c.queue.run(job.id)
        connector = await c.registry.get("simulated")
        assert connector.document["blocked_until"] > database.server_clock.now_ms() + HOUR_MS // 2
        assert [entry.status for entry in c.journal()] == [429]
        await c.registry.unblock("simulated")
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_a_429_for_longer_than_a_number_can_hold_stops_the_run_too(
    database: Database, tmp_path: Path
) -> None:
    config = WorkerConfig("ann", poll_seconds=0.2, tries=QUICK)
    async with collecting(database, tmp_path, config=config) as c:
        c.exchange.faults.add(TooManyRequests(endpoint="klines", retry_after_s=10**30))
        job = await c.backfill(c.first_ms + DAY)
        await c.until(job, lambda job: job.document["waiting_for"] == "retry")
        connector = await c.registry.get("simulated")
        assert connector.document["blocked_until"] > database.server_clock.now_ms() + 300 * DAY
        assert [entry.status for entry in c.journal()] == [429]


async def test_a_status_without_the_venue_s_words_pauses_no_job(
    database: Database, tmp_path: Path
) -> None:
    config = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.05), tries=Tries(most=1))
    async with collecting(database, tmp_path, config=config) as c:
        (number,) = c.exchange.faults.add(ServerError(status=404, endpoint="klines"))
        job = await c.backfill(c.first_ms + DAY)
        refused = await c.until(job, lambda job: job.document["stats"]["fail"] > 2)
        assert refused.document["refused"]["kind"] == "404"
        assert refused.document["refused"]["since"] <= refused.document["stats"]["last_run_at"]
        c.exchange.faults.remove(number)
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert done.document["refused"] is None


async def test_a_full_disk_passes_and_its_pages_are_not_asked_for_again(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = {"left": 3}

    def no_space(point: StorageFault, _path: str) -> None:
        if point is StorageFault.BEFORE_WRITE and full["left"]:
            full["left"] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("collector.store.store.storage_at", lambda root: storage_at(root, no_space))
    config = WorkerConfig("ann", poll_seconds=0.2, retry=NEVER_AGAIN, tries=QUICK)
    async with collecting(database, tmp_path, config=config) as c:
        until = c.first_ms + DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert full["left"] == 0
        starts = [entry.start_ms for entry in c.journal() if entry.limit != 1]
        assert len(starts) == len(set(starts))
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_a_backfill_with_a_small_budget_gets_further_with_every_run(
    database: Database, tmp_path: Path
) -> None:
    """The page at the cursor lies beside stored bars, and must not be the last to get a token."""
    async with collecting(database, tmp_path, days=40, limits=Limits(4, 1_000)) as c:
        job = await c.backfill(c.first_ms + 39 * DAY)
        reached = c.first_ms + 8 * DAY
        await c.until(job, lambda job: job.cursor.since_ms >= reached, 30)
