"""An old answer never replaces a newer one, however late it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from collector.jobs.job import Cursor
from collector.market.answer import Question
from collector.market.interval import unbroken
from tests.support.local_collector import MINUTE, collecting
from workers.handlers.asking import answered_at, request

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.mongo.client import Database
    from workers.venues import Venue


@pytest.mark.parametrize(
    ("sent", "arrived", "told", "known"),
    [
        pytest.param(10_000, 10_040, 10_000, 10_040, id="the second it was told in is not over"),
        pytest.param(10_000, 70_000, 10_000, 10_999, id="read a minute late"),
        pytest.param(10_000, 10_040, 3_000, 10_000, id="a venue whose clock is late"),
        pytest.param(10_000, 10_040, 99_000, 10_040, id="a venue whose clock is ahead"),
        pytest.param(10_000, 70_000, None, 10_000, id="a venue that does not tell"),
    ],
)
def test_an_answer_is_known_from_when_the_venue_made_it(
    sent: int, arrived: int, told: int | None, known: int
) -> None:
    assert answered_at(sent, arrived, told) == known


async def told(
    venue: Venue, series: Series, since_ms: int, bars: int, by: float = 0.0
) -> tuple[CandleBatch, int]:
    """What a venue says of some bars, with so much more volume, and when it said that."""
    answer = await request(venue, series, Question.of(series.timeframe, since_ms, bars))
    batch = answer.bars
    return replace(batch, v=batch.v + by), answer.at


async def write(venue: Venue, series: Series, bars: CandleBatch, known_at: int, fence: int) -> None:
    covered = unbroken(bars.ts, series.timeframe)
    await venue.commit.add(series, bars, covered, fence=fence, known_at=known_at, alone=True)


async def test_what_a_stalled_worker_writes_late_is_old(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        venue = await c.venues.of(c.series)
        old, old_at = await told(venue, c.series, c.first_ms, 10)
        new, new_at = await told(venue, c.series, c.first_ms, 10, by=1.0)
        await write(venue, c.series, new, new_at, 2)
        await write(venue, c.series, old, old_at, 1)
        end = c.first_ms + 10 * MINUTE
        assert [row[5] for row in c.stored(c.first_ms, end)] == new.v.tolist()


async def test_what_another_worker_wrote_is_not_hidden_by_what_this_one_remembers(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        until = c.exchange.now_ms() // MINUTE * MINUTE
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=until - 5 * MINUTE))
        await c.until(job, lambda job: job.document["stats"]["success"] > 0)
        # Another worker has the job for a run, and is told something else about the same bars.
        await database.jobs.update_one({"_id": job.id}, {"$inc": {"fence": 1}})
        venue = await c.venues.of(c.series)
        other, at = await told(venue, c.series, until - 3 * MINUTE, 3, by=1.0)
        await write(venue, c.series, other, at, 2)
        before = (await c.queue.get(job.id)).document["stats"]["success"]
        await database.jobs.update_one(
            {"_id": job.id}, {"$set": {"cursor.since_ms": until - MINUTE}}
        )
        await c.queue.run(job.id)
        await c.until(job, lambda job: job.document["stats"]["success"] > before)
        start = until - 3 * MINUTE
        assert c.stored(start, until) == c.truth(start, until)
