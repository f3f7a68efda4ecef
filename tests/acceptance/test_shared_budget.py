"""Live series and the upkeep of the lake, beside more backfills than two workers have slots."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.schedule import Every
from tests.support.fleet import LONG, PAGES_OF_100, fleet
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from collector.mongo.client import Database

BACKFILLS, LIVE = 60, 40
SLOTS = 25
"""Of each of the two workers."""
LIMITS = Limits(40, 1_000)
"""So fast that a backfill seldom waits longer for a token than its run is patient: runs of history
never end by themselves."""
LIVE_TYPE, LIVE_EVERY_S = "trades_incremental", 5
"""Every run of a live series sends one request, all together a fifth of the budget."""
SECONDS = 60 if LONG else 15
DUTIES = ("gap_scan", "compact")
DUTY_EVERY_S = 5


async def test_live_series_run_on_time_and_upkeep_runs_beside_sixty_backfills(
    database: Database, mongo_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slots = {"COLLECTOR_WORKER__CONCURRENCY": str(SLOTS), **PAGES_OF_100}
    async with fleet(
        database, mongo_uri, tmp_path, limits=LIMITS, markets=BACKFILLS + LIVE, days=60, **slots
    ) as f:
        symbols = [market.symbol for market in f.exchange.truth.listings]
        for symbol in symbols[:BACKFILLS]:
            await f.backfill(symbol, days=60)

        async def all_slots_are_taken() -> bool:
            return await database.jobs.count_documents({"state": "running"}) >= 2 * SLOTS

        async with f.worker(), f.worker():
            await until(all_slots_are_taken)
            since = Cursor(since_ms=f.exchange.now_ms())
            often = Every(LIVE_EVERY_S * 1000)
            for symbol in symbols[BACKFILLS:]:
                await f.queue.add(
                    JobSpec("simulated", LIVE_TYPE, symbol, schedule=often, cursor=since)
                )
            for duty in DUTIES:
                await f.queue.add(JobSpec("simulated", duty, schedule=Every(DUTY_EVERY_S * 1000)))
            since_ms = await database.now_ms()
            await asyncio.sleep(SECONDS)
            until_ms = await database.now_ms()
            await asyncio.sleep(2.0)  # The history of runs is written behind the work.
        runs = defaultdict(list)
        within = {"ended_at": {"$gte": since_ms, "$lt": until_ms}, "outcome": "again"}
        for run in await database.job_runs.find(within, sort=[("ended_at", 1)]):
            runs[run["type"]].append(run["ended_at"])
            runs[run["symbol"]].append(run["ended_at"])
        pauses = [
            (after - before) / 1000
            for symbol in symbols[BACKFILLS:]
            for before, after in pairwise([since_ms, *runs[symbol], until_ms])
        ]
        expected = LIVE * SECONDS // LIVE_EVERY_S
        live = len(runs[LIVE_TYPE])
        duties = {duty: len(runs[duty]) for duty in DUTIES}
        with capsys.disabled():
            print(
                f"\nruns of live series in {SECONDS} s: {live} of {expected}"
                f", pauses between two of one series: median {median(pauses):.1f} s"
                f", longest {max(pauses):.1f} s"
                f"; runs of upkeep: {duties}; requests: {len(f.exchange.journal.times())}"
            )
        f.check_no_window_was_exceeded()
    assert live >= 0.75 * expected  # The interval begins when a run ends.
    assert max(pauses) < 3 * LIVE_EVERY_S
    assert all(duties.values())
