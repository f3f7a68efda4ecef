"""A year of FXCM's minutes with bid and ask, through jobs of worker processes to Parquet.

The year, as backfills, by `make chaos`; else the weeks in which clocks change and the turn of the
year, as gaps, which hold everything that is special about it and need no search for the first bar.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.calendar.fx import FX
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.moment import epoch_ms
from collector.market.series import Series
from collector.operations import connectors
from collector.pipeline.resample import resample
from collector.store.store import Store
from tests.support.fxcm.collecting import COLUMNS, login_settings, stored_bars, true_bars
from tests.support.fxcm.living import gone
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.fxcm.server import FakeServer

LONG = os.environ.get("COLLECTOR_CHAOS") == "long"
YEAR = Interval(epoch_ms("2024-01-01"), epoch_ms("2025-01-01"))
WEEKS = (
    Interval(epoch_ms("2024-03-07"), epoch_ms("2024-03-13")),
    Interval(epoch_ms("2024-10-31"), epoch_ms("2024-11-06")),
    Interval(epoch_ms("2024-12-23"), epoch_ms("2025-01-03")),
)
SYMBOLS = ("XAU/USD", "EUR/USD")


@pytest.mark.timeout(1000)
async def test_minutes_and_five_minutes_are_equal_to_the_truth(
    database: Database, mongo_uri: str, fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(now_ms=None, first_ms=YEAR.from_ms)
    await connectors.ensure(database, "fxcm", {"rate_limit": 10_000, "windows": ()})
    queue = JobQueue(database)
    kind = "ohlcv_backfill" if LONG else "gap_backfill"
    for stretch in [YEAR] if LONG else WEEKS:
        cursor = Cursor(since_ms=stretch.from_ms, until_ms=stretch.to_ms)
        for symbol in SYMBOLS:
            for frame in ("1m", "5m"):
                await queue.add(JobSpec("fxcm", kind, symbol, frame, cursor=cursor))
    environment = {
        **login_settings(fxcm_python),
        "COLLECTOR_HOME": str(tmp_path / "home"),
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_DATA": str(tmp_path / "lake"),
        "COLLECTOR_EXCHANGE_URLS": json.dumps({"fxcm": fxcm_server.url}),
    }

    async def all_are_done() -> bool:
        left = {"type": {"$in": ["ohlcv_backfill", "gap_backfill"]}, "status": "active"}
        return not await database.jobs.find(left)

    async with program("workers", **environment), program("workers", **environment):
        await until(all_are_done, "every job is done", 900 if LONG else 300)
    store = Store(tmp_path / "lake")
    for stretch in [YEAR] if LONG else WEEKS:
        for symbol in SYMBOLS:
            check(store, symbol, stretch)
    assert (fxcm_server.count("login"), fxcm_server.second_logins) == (1, 0)
    for entry in fxcm_server.journal:
        await gone(entry.pid)


def check(store: Store, symbol: str, stretch: Interval) -> None:
    one, five = (Series.of("fxcm", symbol, frame) for frame in ("1m", "5m"))
    for series, name in ((one, "m1"), (five, "m5")):
        stored = stored_bars(store, series, stretch.from_ms, stretch.to_ms)
        assert stored == true_bars(symbol, name, stretch.from_ms, stretch.to_ms)
        # Closed time has no rows, and nothing in open time is missing.
        rows = store.rows(series, stretch.from_ms, stretch.to_ms)
        assert set(rows["gap_reason"].to_pylist()) == {None}
        slots = series.timeframe.opens(stretch.from_ms, stretch.to_ms).tolist()
        assert rows["ts"].to_pylist() == slots
    assert FX.closed(stretch)  # or it would show nothing
    check_resampled(store, one, five, stretch)


def check_resampled(store: Store, one: Series, five: Series, stretch: Interval) -> None:
    columns = (*COLUMNS, "is_gap", "t", "gap_reason")
    minutes = store.rows(one, stretch.from_ms, stretch.to_ms, columns=columns)
    batch = CandleBatch.from_arrow(minutes, COLUMNS[6:])
    made = resample(batch, one.timeframe, five.timeframe)
    resampled = zip(
        *(made.ts, made.o, made.h, made.l, made.c, made.v),
        *(made.column(name) for name in COLUMNS[6:]),
        strict=True,
    )
    assert stored_bars(store, five, stretch.from_ms, stretch.to_ms) == list(resampled)
