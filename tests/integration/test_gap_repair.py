"""Gaps find their job, the job goes first, mends them and is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.jobs import types
from collector.jobs.gap_jobs import gap_jobs, missing
from collector.jobs.job import Cursor
from collector.jobs.states import State
from collector.market.candles import CandleBatch
from collector.market.interval import Interval, subtract
from collector.market.series import Series
from collector.simulated.listing import listings
from tests.support.bars import BTC, span
from tests.support.local_collector import (
    DAY,
    MINUTE,
    collecting,
    no_more_gap_jobs,
    put,
    scanned,
)
from tests.support.until import until
from workers.handlers import gap_scan

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
    assert types.GAP_BACKFILL.priority < types.OHLCV_INCREMENTAL.priority


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


async def test_every_series_is_looked_at_however_many_there_are(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gap_scan, "SERIES_AT_ONCE", 2)
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        symbols = [listing.symbol for listing in listings(5)]
        every = [Series.of("simulated", symbol, "1m") for symbol in symbols]
        for series in every:
            for since in (start, end - MINUTE):
                covered = Interval(since, since + MINUTE)
                c.store.append_page(series, CandleBatch.empty(), covered, fence=1, known_at=1)
        await scanned(c)
        await no_more_gap_jobs(c)
        assert [c.store.covered(series) for series in every] == [(Interval(start, end),)] * 5


async def test_a_compaction_looks_for_gaps_too(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        put(c, start, start + MINUTE)
        put(c, end - MINUTE, end)
        await c.job("compact", symbol=None, timeframe=None)
        whole = (Interval(start, end),)
        await until(lambda: c.store.covered(c.series) == whole, "the gap is closed")
        await no_more_gap_jobs(c)
        assert c.stored(start, end) == c.truth(start, end)


@pytest.mark.parametrize("left", ["the middle", "nothing"])
async def test_what_is_lost_of_a_collected_series_is_fetched_again(
    database: Database, tmp_path: Path, left: str
) -> None:
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        live = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=end))
        backfill = await c.backfill(end)
        await c.until(backfill, lambda job: job.state is State.SUCCESS)
        await c.until(live, lambda job: job.document["stats"]["success"] >= 1)
        end = (await c.queue.get(live.id)).cursor.since_ms
        for path in (tmp_path / "simulated").rglob("*.parquet*"):
            path.unlink()
        if left == "the middle":
            put(c, start + 100 * MINUTE, end - 100 * MINUTE)
        await scanned(c)
        await no_more_gap_jobs(c)
        assert subtract([Interval(start, end)], c.store.covered(c.series)) == ()
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
