"""From a leased job to bars on disk, through real ccxt code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from collector.backoff import Backoff
from collector.jobs.job import Cursor
from collector.jobs.states import State, Status
from collector.simulated.faults.answers import ServerError
from collector.store.group_commit import GroupCommit
from tests.support.local_collector import DAY, collecting
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from collector.mongo.client import Database


async def test_a_backfill_reaches_the_earliest_bar_and_equals_the_truth(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        until = c.first_ms + 2 * DAY
        job = await c.backfill(until)
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert done.status is Status.PAUSED
        assert done.cursor.done
        assert done.cursor.since_ms == until
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_a_finished_backfill_is_one_plain_parquet_file(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        until = c.first_ms + 2 * DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        plain = pq.read_table(tmp_path / "simulated" / "BTC-USDT" / "1m.parquet")
        assert plain.column("ts").to_pylist() == [row[0] for row in c.truth(c.first_ms, until)]


async def test_the_compact_job_merges_parts_and_changes_no_reading(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        until = c.first_ms + DAY
        job = await c.job("gap_backfill", cursor=Cursor(c.first_ms, until))
        await c.until(job, lambda job: job.status is Status.DELETED)
        before = c.stored(0, until)
        assert list(tmp_path.rglob("parts/*.parquet"))
        duty = await c.job("compact", symbol=None, timeframe=None)
        await c.until(duty, lambda job: job.document["stats"]["success"] == 1)
        assert not list(tmp_path.rglob("parts/*.parquet"))
        assert c.stored(0, until) == before == c.truth(c.first_ms, until)


async def test_pages_finished_ahead_are_remembered_with_where_the_history_began(
    database: Database, tmp_path: Path
) -> None:
    """One page fails at first; those behind it are not asked for again."""
    config = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
    async with collecting(database, tmp_path, days=6, config=config) as c:
        until = c.first_ms + 5 * DAY
        c.exchange.faults.add(ServerError(endpoint="klines", count=1, probability=0.5))
        job = await c.backfill(until)
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert done.document["progress"]["from_ms"] == c.first_ms
        good = [entry.start_ms for entry in c.journal() if entry.status == 200 and entry.limit != 1]
        assert len(good) == len(set(good)), "a page that had been answered was asked for again"
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_the_last_pages_of_a_backfill_wait_for_no_others(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forever = partial(GroupCommit, gather_s=3600)
    monkeypatch.setattr("workers.venues.GroupCommit", forever)
    async with collecting(database, tmp_path, days=9) as c:
        until_ms = c.first_ms + 9 * DAY
        job = await c.backfill(until_ms)
        await c.until(job, lambda found: found.state is State.SUCCESS)
        assert c.stored(c.first_ms, until_ms) == c.truth(c.first_ms, until_ms)
