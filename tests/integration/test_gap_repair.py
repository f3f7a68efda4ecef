"""Gaps find their job, the job goes first, mends them and is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector.jobs.gap_jobs import gap_jobs, missing
from collector.jobs.job import PRIORITIES
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from tests.integration.collecting import (
    DAY,
    MINUTE,
    Collecting,
    collecting,
    no_more_gap_jobs,
    scanned,
)
from tests.store_bars import BTC, span

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


def test_what_nobody_owns_is_missing() -> None:
    covered = [span(0, 10), span(20, 30), span(40, 50)]
    assert missing(covered, []) == (span(10, 20), span(30, 40))
    assert missing(covered, [span(5, 25)]) == (span(30, 40),)
    assert missing([], []) == ()


def test_gaps_close_together_are_one_job_and_old_ones_none() -> None:
    holes = [span(0, 5), span(100, 110), span(5000, 5001)]
    jobs = gap_jobs(BTC, holes)
    assert [(job.cursor.since_ms, job.cursor.until_ms) for job in jobs] == [
        (span(0, 110).from_ms, span(0, 110).to_ms),
        (span(5000, 5001).from_ms, span(5000, 5001).to_ms),
    ]
    assert len(gap_jobs(BTC, holes, after_ms=span(0, 110).to_ms)) == 1
    assert all(job.type == "gap_backfill" for job in jobs)


def test_gaps_go_before_new_bars() -> None:
    assert PRIORITIES["gap_backfill"] < PRIORITIES["ohlcv_incremental"]


def put(c: Collecting, from_ms: int, to_ms: int) -> None:
    """Bars as an earlier run left them."""
    batch = CandleBatch.of(c.truth(from_ms, to_ms))
    c.store.append_page(c.series, batch, Interval(from_ms, to_ms), fence=1, known_at=1)


async def test_a_hole_in_the_ledger_is_found_mended_and_forgotten(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        put(c, start, start + 100 * MINUTE)
        put(c, start + 130 * MINUTE, end)
        assert len(c.stored(start, end)) == 1410
        await scanned(c)
        await no_more_gap_jobs(c)
        assert c.stored(start, end) == c.truth(start, end)
        assert c.store.covered(c.series) == (Interval(start, end),)
        asked = len(c.journal())
        await scanned(c)
        assert not await c.queue.find({"type": "gap_backfill"})
        assert len(c.journal()) == asked, "a whole series is not asked for again"


async def test_a_compaction_looks_for_gaps_too(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        put(c, start, start + MINUTE)
        put(c, end - MINUTE, end)
        await c.job("compact", symbol=None, timeframe=None)
        async with asyncio.timeout(30):
            while c.store.covered(c.series) != (Interval(start, end),):
                await asyncio.sleep(0.02)
        await no_more_gap_jobs(c)
        assert c.stored(start, end) == c.truth(start, end)


async def test_a_backfill_that_has_not_come_there_yet_owns_its_stretch(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        put(c, start, start + MINUTE)
        put(c, end - MINUTE, end)
        await c.registry.pause("simulated")
        backfill = await c.backfill(end)
        await c.queue.pause(backfill.id)
        await c.registry.resume("simulated")
        await scanned(c)
        assert not await c.queue.find({"type": "gap_backfill"})


async def test_an_old_gap_is_left_to_the_nightly_scan(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, days=20) as c:
        start, end = c.first_ms, c.first_ms + DAY
        put(c, start, start + MINUTE)
        put(c, end - MINUTE, end)
        await scanned(c)
        assert not await c.queue.find({"type": "gap_backfill"})
        night = await c.job("full_scan", symbol=None, timeframe=None)
        await c.until(night, lambda job: job.document["stats"]["success"] >= 1)
        await no_more_gap_jobs(c)
        assert c.stored(start, end) == c.truth(start, end)
