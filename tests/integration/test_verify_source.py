"""Random bars against what the exchange serves today: found, reported, stored, and resumed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.jobs.schedule import Once
from collector.jobs.states import State
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.reports.source_check import PAGE, SAMPLES
from collector.reports.source_reports import SourceReports
from tests.support.local_collector import (
    DAY,
    MINUTE,
    Collecting,
    collecting,
    no_more_gap_jobs,
)
from workers.handlers.verify_source import BEHIND_ALL

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from collector.jobs.job import Job
    from collector.mongo.client import Database

WRONG = 300


def put(c: Collecting, from_ms: int, to_ms: int, *, wrong: int = 0) -> None:
    """Bars as they were first served, the first few of them other than today."""
    rows = [
        [*row[:5], row[5] + (1.0 if at < wrong else 0.0)]
        for at, row in enumerate(c.truth(from_ms, to_ms))
    ]
    c.store.append_page(
        c.series, CandleBatch.of(rows), Interval(from_ms, to_ms), fence=1, known_at=1
    )


async def verified(c: Collecting, **fields: object) -> Job:
    job = await c.job("verify_source", symbol=None, timeframe=None, **fields)
    return await c.until(job, lambda job: job.document["stats"]["success"] >= 1)


async def test_what_the_exchange_still_says_passes_in_few_requests(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + DAY)
        job = await verified(c)
        report = await SourceReports(database).find(c.series)
        assert report is not None
        assert (report["ok"], report["count"], report["compared"]) == (True, 0, SAMPLES)
        assert job.document["progress"]["last"] == {
            "series": 1,
            "compared": SAMPLES,
            "different": 0,
        }
        assert len(c.journal()) <= DAY // MINUTE // PAGE + 1


async def test_a_bar_told_otherwise_is_reported_and_stored_as_the_newer(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + DAY, wrong=WRONG)
        with caplog.at_level(logging.WARNING):
            await verified(c)
        assert "source_differs" in caplog.text
        report = await SourceReports(database).find(c.series)
        assert report is not None
        assert not report["ok"]
        for example in report["examples"]:
            at = example["ts"]
            assert example["column"] == "v"
            (row,) = c.store.rows(c.series, at, at + MINUTE).to_pylist()
            assert (row["ver"], row["v"]) == (2, example["source"])
            assert c.stored(at, at + MINUTE) == c.truth(at, at + MINUTE)


async def test_when_several_bars_differ_the_whole_series_is_asked_about(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no sample is taken: this seed chooses none of the last bars."""
    monkeypatch.setattr("workers.handlers.verify_source.random.getrandbits", lambda _: 0)
    async with collecting(database, tmp_path, days=10) as c:
        end = c.first_ms + 9 * DAY
        put(c, c.first_ms, end - 3 * MINUTE, wrong=1_000)
        put(c, end - 3 * MINUTE, end, wrong=3)
        await verified(c)
        [whole] = await c.database.jobs.find({"type": "gap_backfill", "priority": BEHIND_ALL})
        assert Interval(whole["cursor"]["since_ms"], whole["cursor"]["until_ms"]) == Interval(
            c.first_ms, end
        )
        await no_more_gap_jobs(c)
        assert c.stored(c.first_ms, end) == c.truth(c.first_ms, end)


async def test_out_of_tokens_it_goes_on_where_it_was(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, days=6, limits=Limits(4, 1_500)) as c:
        put(c, c.first_ms, c.first_ms + 5 * DAY)
        await verified(c)
        asked = [entry.start_ms for entry in c.journal()]
        assert len(asked) > 8, "more than the budget has at once"
        assert asked == sorted(set(asked)), "no page is asked for twice"
        report = await SourceReports(database).find(c.series)
        assert report is not None
        assert (report["count"], report["compared"]) == (0, SAMPLES)
    outcomes = [run["outcome"] for run in await database.job_runs.find({"type": "verify_source"})]
    assert "wait" in outcomes
    assert outcomes.count("again") == 1


async def test_every_series_has_its_turn_and_one_that_is_gone_holds_up_nobody(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + 100 * MINUTE)
        gone = Series.of("simulated", "AAA/USDT", "1m")
        bars = CandleBatch.of(c.truth(c.first_ms, c.first_ms + 10 * MINUTE))
        stretch = Interval(c.first_ms, c.first_ms + 10 * MINUTE)
        c.store.append_page(gone, bars, stretch, fence=1, known_at=1)
        job = await verified(c, schedule=Once())
        assert job.state is State.SUCCESS
        assert job.document["progress"]["last"]["compared"] == 100
        report = await SourceReports(database).find(gone)
        assert report is not None
        assert report["compared"] == 0
