"""One damaged file costs the work on one series, until it is repaired. All others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from collector import metrics
from collector.jobs.states import Status
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from tests.support.local_collector import DAY, MINUTE, Collecting, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

ETH = Series.of("simulated", "ETH/USDT", "1m")
DUTIES = ("compact", "gap_scan", "tail_refresh", "full_scan")


def put(c: Collecting, series: Series, from_ms: int, to_ms: int) -> None:
    bars = c.truth(from_ms, to_ms, symbol=series.symbol.replace("/", ""))
    covered = Interval(from_ms, to_ms)
    c.store.append_page(series, CandleBatch.of(bars), covered, fence=1, known_at=1)


async def ran(c: Collecting, kind: str) -> None:
    """Runs the duty once; it must neither fail nor stop."""
    job = await c.job(kind, symbol=None, timeframe=None)
    before = job.document["stats"]["success"]
    if before:
        await c.queue.run(job.id)
    done = await c.until(job, lambda job: job.document["stats"]["success"] > before)
    assert done.status is Status.ACTIVE
    assert done.document["stats"]["fail"] == 0


def left_out() -> float:
    return float(metrics.SERIES_DAMAGED.labels("simulated")._value.get())


@pytest.mark.parametrize("duty", DUTIES)
async def test_a_damaged_sealed_file_stops_its_own_series_alone(
    database: Database, tmp_path: Path, duty: str
) -> None:
    async with collecting(database, tmp_path, copies=Copies(tail_days=1)) as c:
        start, end = c.first_ms, c.first_ms + DAY
        for series in (c.series, ETH):
            put(c, series, start, start + 60 * MINUTE)
            c.store.compact(series)
            put(c, series, end - 60 * MINUTE, end)
        sealed = tmp_path / "simulated" / "BTC-USDT" / "1m.parquet"
        sealed.write_bytes(sealed.read_bytes()[:-1])
        damaged, before = sealed.read_bytes(), left_out()
        await ran(c, duty)
        assert left_out() > before
        assert sealed.read_bytes() == damaged
        gaps = [job.symbol for job in await c.queue.find({"type": "gap_backfill"})]
        assert "BTC/USDT" not in gaps, "nobody knows what the file held"
        if duty == "tail_refresh":
            assert (tmp_path / "simulated" / "ETH-USDT" / "tail" / "1m.tail.parquet").exists()
            return
        while c.store.covered(ETH) != (Interval(start, end),):
            await ran(c, "gap_scan")
        if duty in ("compact", "full_scan"):
            assert not c.store.storage.names("simulated/ETH-USDT/parts/1m")


@pytest.mark.parametrize("duty", DUTIES)
@pytest.mark.parametrize("name", ["5m.parquet", "4h.parquet", "versions/1m.parquet"])
async def test_a_damaged_copy_or_a_foreign_file_stops_nobody(
    database: Database, tmp_path: Path, duty: str, name: str
) -> None:
    copies = Copies(DEFAULT_TIMEFRAMES, tail_days=1)
    async with collecting(database, tmp_path, copies=copies) as c:
        start = c.first_ms
        put(c, c.series, start, start + 60 * MINUTE)
        c.store.compact(c.series)
        file = tmp_path / "simulated" / "BTC-USDT" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
        await ran(c, duty)
        assert len(c.stored(start, start + 60 * MINUTE)) == 60
        if name == "5m.parquet" and duty in ("compact", "full_scan"):
            assert len(pq.read_table(file)) == 12, "a copy is made again"


async def test_a_backfill_ends_well_beside_a_damaged_file(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        put(c, c.series, c.first_ms, c.first_ms + MINUTE)
        c.store.compact(c.series)
        sealed = tmp_path / "simulated" / "BTC-USDT" / "1m.parquet"
        sealed.write_bytes(b"")
        job = await c.backfill(c.first_ms + DAY)
        done = await c.until(job, lambda job: job.document["stats"]["success"] == 1)
        assert done.cursor.done
        sealed.unlink()
        assert c.stored(c.first_ms, c.first_ms + DAY) == c.truth(c.first_ms, c.first_ms + DAY)
