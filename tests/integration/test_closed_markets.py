"""Jobs of a market that closes every day: they ask for nothing that cannot be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.jobs.job import Cursor
from collector.jobs.states import State
from collector.market.calendar import lookup
from collector.market.calendar.sessions import Session, Sessions
from tests.support.local_collector import DAY, MINUTE, collecting, no_more_gap_jobs, put, scanned

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

HOUR = 60 * MINUTE
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# Closed from 10:00 to 12:00.
BREAKS = Sessions(
    "breaks",
    "UTC",
    tuple(
        Session(f"{day} 12:00", f"{following} 10:00")
        for day, following in zip(DAYS, (*DAYS[1:], DAYS[0]), strict=True)
    ),
)


@pytest.fixture(autouse=True)
def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "SESSIONS", {"simulated": BREAKS})


async def test_a_hole_in_closed_time_is_no_gap(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + 10 * HOUR)
        put(c, c.first_ms + 12 * HOUR, c.first_ms + DAY)
        await scanned(c)
        assert not await c.queue.find({"type": "gap_backfill"})
        assert not c.journal()


async def test_a_gap_beside_closed_time_is_mended_and_closed_time_stays_unsettled(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        start, end = c.first_ms, c.first_ms + DAY
        put(c, start, start + 10 * HOUR - 20 * MINUTE)
        put(c, start + 12 * HOUR, end)
        await scanned(c)
        await no_more_gap_jobs(c)
        open_time = [*c.truth(start, start + 10 * HOUR), *c.truth(start + 12 * HOUR, end)]
        stored = c.stored(start, end)
        assert [row for row in stored if row in open_time] == open_time
        asked = len(c.journal())
        await scanned(c)
        assert not await c.queue.find({"type": "gap_backfill"})
        assert len(c.journal()) == asked


async def test_a_job_for_closed_time_alone_ends_without_a_request(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        closed = Cursor(since_ms=c.first_ms + 10 * HOUR, until_ms=c.first_ms + 12 * HOUR)
        await c.job("gap_backfill", cursor=closed)
        await no_more_gap_jobs(c)
        assert not [each for each in c.journal() if "klines" in str(each)]


async def test_history_over_days_is_whole(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        end = c.first_ms + 2 * DAY
        job = await c.backfill(end)
        await c.until(job, lambda found: found.state is State.SUCCESS)
        # This venue trades in the breaks, too: its pages end sooner than their slots would.
        await no_more_gap_jobs(c)
        rows = c.store.rows(c.series, c.first_ms, end)
        slots = c.series.timeframe.opens(c.first_ms, end).tolist()
        assert set(slots) <= set(rows["ts"].to_pylist())
        assert "missing" not in rows["gap_reason"].to_pylist()
