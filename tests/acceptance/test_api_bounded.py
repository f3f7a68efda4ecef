"""Whatever is asked of the API, its memory is bounded, and a late page costs what an early one did.

Memory is what the kernel says the process has held at most.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bson import ObjectId

from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.store import Store
from tests.acceptance.api_process import Api, api_process

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

BTC = Series.of("simulated", "BTC/USDT", "1m")
MINUTE = 60_000
FIRST = 1_451_606_400_000
"""2016-01-01"""
MONTHS, MONTH = 120, 43_830
TEN_YEARS = MONTHS * MONTH
CANDLES = "/api/v1/candles"
SMALLEST_MB = {"csv": 300, "json": 300, "arrow": 300, "parquet": 100}
"""Every format, with what an answer of ten years is larger than."""
JOBS, AT_ONCE = 100_000, 5_000
FEW_MB = 150
"""Ten years of bars are hundreds by the column, and so are the jobs as objects."""


def settings(database: Database, mongo_uri: str, root: Path) -> dict[str, str]:
    return {
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_DATA": str(root),
        "COLLECTOR_LOGGING__LEVEL": "WARNING",
    }


# -- candles ------------------------------------------------------------------------------------


def store_ten_years(root: Path) -> None:
    """Nine years in the sealed file; the last one still lies in parts."""
    store = Store(root)
    for month in range(MONTHS):
        if month == MONTHS - 12:
            store.compact(BTC)
        start = FIRST + month * MONTH * MINUTE
        covered = Interval(start, start + MONTH * MINUTE)
        store.append_page(BTC, _bars(month, start), covered, fence=1, known_at=1 + month)


def _bars(month: int, start: int) -> CandleBatch:
    """A month of prices with as many digits as real ones have."""
    rng = np.random.default_rng(month)
    ts = start + MINUTE * np.arange(MONTH)
    opens = np.round(30_000 + rng.normal(0, 10, MONTH).cumsum(), 2)
    closes = np.roll(opens, -1)
    volume = np.round(rng.exponential(20, MONTH), 5)
    columns = [ts, opens, np.maximum(opens, closes), np.minimum(opens, closes), closes, volume]
    return CandleBatch.of_columns(np.column_stack([*columns, np.round(volume * opens, 4)]))


@pytest.mark.timeout(300)
async def test_ten_years_of_minutes_are_streamed_in_little_memory(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(store_ten_years, tmp_path)
    whole = {"exchange_id": "simulated", "symbol": "BTC/USDT", "timeframe": "1m"}
    week = {"end": FIRST + 10_080 * MINUTE}
    async with api_process(**settings(database, mongo_uri, tmp_path)) as api:
        for form in SMALLEST_MB:
            await read(api, **whole, **week, format=form)
        before_mb = api.peak_mb
        async with api.session.get(CANDLES, params={**whole, "format": "csv"}) as stalled:
            # Somebody who asks for everything and does not read on costs no more either.
            await stalled.content.readline()
            for form, smallest_mb in SMALLEST_MB.items():
                lines, size_mb = await read(api, **whole, format=form)
                assert size_mb > smallest_mb
                assert lines == 1 + TEN_YEARS or form != "csv"
        assert api.peak_mb - before_mb < FEW_MB


async def read(api: Api, **query: Any) -> tuple[int, float]:
    """Lines and megabytes of an answer, which is not kept."""
    lines = size = 0
    async with api.session.get(CANDLES, params=query) as response:
        assert response.status == 200
        async for piece in response.content.iter_any():
            lines += piece.count(b"\n")
            size += len(piece)
    return lines, size / 2**20


# -- jobs ---------------------------------------------------------------------------------------


async def insert_jobs(database: Database) -> set[str]:
    """As many jobs as one that JobQueue made, copied; returns their ids."""
    queue = JobQueue(database)
    spec = JobSpec("simulated", "ohlcv_incremental", "C0/USDT", "1m")
    made = (await queue.add(spec))[0].document
    ids = [made["_id"]]
    for start in range(1, JOBS, AT_ONCE):
        copies = [
            {**made, "_id": ObjectId(), "symbol": f"C{n}/USDT", "unique_key": f"{n}"}
            for n in range(start, min(start + AT_ONCE, JOBS))
        ]
        await database.jobs.insert_many(copies, ordered=False)
        ids += [copy["_id"] for copy in copies]
    return {str(each) for each in ids}


@pytest.mark.timeout(300)
async def test_a_hundred_thousand_jobs_are_listed_page_by_page(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    ids = await insert_jobs(database)
    async with api_process(**settings(database, mongo_uri, tmp_path)) as api:
        listed: list[str] = []
        cursors: list[str] = []
        peaks_mb: list[float] = []
        page: dict[str, Any] = {"limit": 1000}
        while page:
            answer = await api.get("/api/v1/jobs", **page)
            listed += [job["id"] for job in answer.body["items"]]
            cursors.append(answer.body["next_cursor"])
            peaks_mb.append(api.peak_mb)
            page = {"limit": 1000, "cursor": cursors[-1]} if cursors[-1] else {}
        assert len(listed) == JOBS
        assert set(listed) == ids
        # The first pages warm up; whoever kept what it read would grow by hundreds from there.
        assert peaks_mb[-1] - peaks_mb[4] < FEW_MB / 3
        early, late = await in_turn(api, cursors[0], cursors[-2])
        assert late < 4 * early


async def in_turn(api: Api, *cursors: str) -> list[float]:
    """How long a short page behind each of the cursors takes, taking turns: the median."""
    took: list[list[float]] = [[] for _ in cursors]
    for _ in range(40):
        for cursor, each in zip(cursors, took, strict=True):
            started = time.monotonic()
            answer = await api.get("/api/v1/jobs", limit=10, cursor=cursor)
            each.append(time.monotonic() - started)
            assert len(answer.body["items"]) == 10
    return [median(each) for each in took]
