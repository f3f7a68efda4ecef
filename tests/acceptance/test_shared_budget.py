"""Live series and the upkeep of the lake, beside more backfills than two workers have slots."""

from __future__ import annotations

import asyncio
from statistics import median
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.durations import MINUTE_MS
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.schedule import Every
from tests.support.fleet import LONG, PAGES_OF_100, fleet
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from collector.jobs.job import Job
    from collector.mongo.client import Database

BACKFILLS, LIVE = 60, 40
SLOTS = 25
"""Of each of the two workers."""
LIMITS = Limits(20, 6_000)
"""200 requests a minute. The live series need 40 of them."""
MINUTES = 3 if LONG else 1
DUTIES = ("gap_scan", "compact")
DUTY_EVERY_MS = 20_000


async def test_live_series_keep_their_minute_and_upkeep_runs_beside_sixty_backfills(
    database: Database, mongo_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slots = {"COLLECTOR_WORKER__CONCURRENCY": str(SLOTS), **PAGES_OF_100}
    async with fleet(
        database, mongo_uri, tmp_path, limits=LIMITS, markets=BACKFILLS + LIVE, days=10, **slots
    ) as f:
        symbols = [market.symbol for market in f.exchange.truth.listings]
        for symbol in symbols[:BACKFILLS]:
            await f.backfill(symbol, days=10)

        async def backfills_take_all_there_is() -> bool:
            return len(f.klines()) > 2 * LIMITS.rate_limit

        async with f.worker(), f.worker():
            await until(backfills_take_all_there_is)
            duties = [
                (await f.queue.add(JobSpec("simulated", duty, schedule=Every(DUTY_EVERY_MS))))[0]
                for duty in DUTIES
            ]
            now_ms = f.exchange.now_ms()
            first_ms = now_ms - now_ms % MINUTE_MS + MINUTE_MS
            since = Cursor(since_ms=first_ms - MINUTE_MS)
            live = [
                (
                    await f.queue.add(
                        JobSpec("simulated", "ohlcv_incremental", s, "1m", cursor=since)
                    )
                )[0]
                for s in symbols[BACKFILLS:]
            ]
            last_ms = first_ms + (MINUTES - 1) * MINUTE_MS

            async def all_have_the_last_bar() -> bool:
                if f.exchange.now_ms() >= last_ms + MINUTE_MS:
                    return True
                ids = {"$in": [job.id for job in live]}
                behind = {"_id": ids, "cursor.since_ms": {"$lt": last_ms}}
                return not await database.jobs.count_documents(behind)

            await until(all_have_the_last_bar, "the last minute is over", MINUTES * 60 + 90)
            await asyncio.sleep(2.0)  # The history of runs is written behind the work.
        late = await seconds_after_close(database, live, first_ms, last_ms)
        runs = [(await f.queue.get(duty.id)).document["stats"]["success"] for duty in duties]
        with capsys.disabled():
            print(
                f"\nlive bars fetched in their minute: {len(late)} of {LIVE * MINUTES}"
                f" (median {median(late or [0]):.1f} s, longest {max(late or [0]):.1f} s)"
                f"; runs of {' and '.join(DUTIES)}: {runs}"
                f"; requests: {len(f.klines())}"
            )
        f.check_no_window_was_exceeded()
    assert len(late) == LIVE * MINUTES
    assert all(runs), dict(zip(DUTIES, runs, strict=True))


async def seconds_after_close(
    database: Database, live: list[Job], first_ms: int, last_ms: int
) -> list[float]:
    """Of each bar that a run has fetched before the next one closed: how long after its close."""
    ids = {"$in": [job.id for job in live]}
    runs = await database.job_runs.find({"job_id": ids, "bars": {"$gt": 0}})
    late = {}
    for run in runs:
        closed_ms = run["ended_at"] - run["ended_at"] % MINUTE_MS
        if first_ms <= closed_ms <= last_ms:
            late.setdefault((run["job_id"], closed_ms), (run["ended_at"] - closed_ms) / 1000)
    return list(late.values())
