"""An exchange that misbehaves in every way it knows: the lake still ends up with the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from collector.backoff import Backoff
from collector.jobs.job import Cursor
from collector.jobs.states import State, Status
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.simulated.faults.catalogue import parse_faults
from tests.support.local_collector import (
    DAY,
    MINUTE,
    collecting,
    gap_jobs_at_rest,
    no_more_gap_jobs,
    scanned,
)
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))

PASSING: dict[str, dict[str, Any]] = {
    "server errors": {"kind": "server_error", "endpoint": "klines", "count": 3},
    "resets": {"kind": "reset", "endpoint": "klines", "count": 2},
    "truncated": {"kind": "truncated", "endpoint": "klines", "count": 2},
    "malformed": {"kind": "malformed", "endpoint": "klines", "count": 2},
    "html": {"kind": "html", "endpoint": "klines", "count": 2},
    "empty when busy": {"kind": "empty", "endpoint": "klines", "once": True},
    "rows dropped once": {"kind": "dropped", "ratio": 0.02},
    "duplicates": {"kind": "duplicates", "ratio": 0.05},
    "disorder": {"kind": "disorder", "ratio": 0.05},
    "bad prices once": {"kind": "bad_ohlc", "ratio": 0.02, "once": True},
    "wrong types once": {"kind": "wrong_types", "ratio": 0.01, "once": True},
    "unaligned once": {"kind": "unaligned", "ratio": 0.01, "shift_ms": 7000, "once": True},
    "future bars": {"kind": "future", "bars": 2},
    "429": {"kind": "too_many_requests", "retry_after_s": 1, "count": 1},
    "418": {"kind": "ban", "retry_after_s": 1, "count": 1},
}


@pytest.mark.parametrize("name", PASSING)
async def test_what_passes_costs_nothing(database: Database, tmp_path: Path, name: str) -> None:
    faults = tuple(parse_faults(PASSING[name]))
    async with collecting(database, tmp_path, faults=faults, config=CONFIG) as c:
        until = c.first_ms + 2 * DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, until) == c.truth(c.first_ms, until)
        table = c.store.rows(c.series, c.first_ms, until)
        assert not any(table.column("is_gap").to_pylist())


async def test_a_bar_that_is_always_bad_is_missing_and_in_quarantine(
    database: Database, tmp_path: Path
) -> None:
    (fault,) = parse_faults({"kind": "bad_ohlc"})
    async with collecting(database, tmp_path, config=CONFIG) as c:
        bad = c.first_ms + 100 * MINUTE
        c.exchange.faults.add(replace(fault, spans=((bad, bad + MINUTE),)))
        until = c.first_ms + DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        table = c.store.rows(c.series, bad, bad + MINUTE)
        assert table.column("gap_reason").to_pylist() == ["missing"]
        stored = c.stored(0, until)
        assert stored == [row for row in c.truth(c.first_ms, until) if row[0] != bad]
        (file,) = tmp_path.rglob("quarantine/*.parquet")
        rows = pq.read_table(file).to_pylist()
        assert {(row["ts"], row["reason"], row["code"]) for row in rows} == {
            (bad, "ohlc", "E_SCHEMA")
        }


async def test_a_minute_without_trades_says_so(database: Database, tmp_path: Path) -> None:
    faults = tuple(parse_faults({"kind": "no_trade", "ratio": 0.05}))
    async with collecting(database, tmp_path, faults=faults, config=CONFIG) as c:
        until = c.first_ms + 2 * DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        truth = c.truth(c.first_ms, until)
        assert c.stored(0, until) == truth
        reasons = c.store.rows(c.series, truth[0][0], until).column("gap_reason").to_pylist()
        assert reasons.count("no_trade") == len(reasons) - len(truth) > 50
        assert "missing" not in reasons


async def test_a_gap_job_fills_its_interval_and_is_gone(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        start, end = c.first_ms + 10 * MINUTE, c.first_ms + 30 * MINUTE
        job = await c.job("gap_backfill", cursor=Cursor(start, end))
        gone = await c.until(job, lambda job: job.status is Status.DELETED)
        assert gone.state is State.SUCCESS
        assert c.stored(0, c.first_ms + DAY) == c.truth(start, end)


async def test_an_unknown_symbol_stops_and_tells(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await c.backfill(c.first_ms + DAY, symbol="BTC/USDX")
        failed = await c.until(job, lambda job: job.state is State.FAILED)
        assert "BTC/USDX" in failed.document["stats"]["last_error"]


async def test_a_live_series_follows_the_exchange(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        since = c.exchange.now_ms() // MINUTE * MINUTE - 90 * MINUTE
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=since))
        ran = await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        assert ran.state is State.IDLE
        stored = c.stored(0, since + DAY)
        assert stored == c.truth(since, stored[-1][0] + MINUTE)
        # The running bar is not among them, and nothing that closed a bar ago is missing.
        assert c.exchange.now_ms() - 2 * MINUTE - 5_000 <= stored[-1][0] + MINUTE
        assert stored[-1][0] + MINUTE <= c.exchange.now_ms()


MESSY = (
    {"kind": "duplicates", "ratio": 0.05},
    {"kind": "disorder", "ratio": 0.05},
    {"kind": "bad_ohlc", "ratio": 0.01, "once": True},
    {"kind": "unaligned", "ratio": 0.01, "shift_ms": 7000, "once": True},
    {"kind": "future", "bars": 2},
    {"kind": "dropped", "ratio": 0.02},
    {"kind": "no_trade", "ratio": 0.03},
    {"kind": "server_error", "endpoint": "klines", "count": 3},
)


async def test_everything_at_once_still_ends_in_the_truth(
    database: Database, tmp_path: Path
) -> None:
    faults = tuple(fault for each in MESSY for fault in parse_faults(each))
    async with collecting(database, tmp_path, faults=faults, config=CONFIG) as c:
        until = c.first_ms + 2 * DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        await no_more_gap_jobs(c)
        truth = c.truth(c.first_ms, until)
        assert c.stored(0, until) == truth
        reasons = c.store.rows(c.series, truth[0][0], until).column("gap_reason").to_pylist()
        assert reasons.count("no_trade") == len(reasons) - len(truth) > 30
        assert "missing" not in reasons
        files = list(tmp_path.rglob("quarantine/*.parquet"))
        refused = {row["reason"] for file in files for row in pq.read_table(file).to_pylist()}
        assert {"ohlc", "misaligned"} <= refused


async def test_bars_that_were_bad_for_a_while_are_repaired(
    database: Database, tmp_path: Path
) -> None:
    (fault,) = parse_faults({"kind": "bad_ohlc"})
    async with collecting(database, tmp_path, config=CONFIG) as c:
        bad = c.first_ms + 100 * MINUTE
        (number,) = c.exchange.faults.add(replace(fault, spans=((bad, bad + 3 * MINUTE),)))
        until = c.first_ms + DAY
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        (gap,) = await gap_jobs_at_rest(c)
        assert (gap.cursor.since_ms, gap.cursor.until_ms) == (bad, bad + 3 * MINUTE)
        table = c.store.rows(c.series, bad, bad + 3 * MINUTE)
        assert table.column("gap_reason").to_pylist() == ["missing"] * 3
        await scanned(c)
        assert len(await c.queue.find({"type": "gap_backfill"})) == 1, "it has its owner"
        c.exchange.faults.remove(number)
        await c.queue.run(gap.id)
        await no_more_gap_jobs(c)
        assert c.stored(0, until) == c.truth(c.first_ms, until)


async def test_a_live_bar_that_is_corrected_after_its_close_is_stored_corrected(
    database: Database, tmp_path: Path
) -> None:
    (fault,) = parse_faults({"kind": "revision", "after_ms": 3_600_000})
    async with collecting(database, tmp_path, config=CONFIG) as c:
        (number,) = c.exchange.faults.add(fault)
        since = c.exchange.now_ms() // MINUTE * MINUTE - 6 * MINUTE
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=since))
        ran = await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        end = ran.cursor.since_ms
        truth = c.truth(since, end)
        assert len(c.stored(since, end)) == len(truth)
        assert c.stored(since, end)[-1] != truth[-1]
        c.exchange.faults.remove(number)
        # As if the newest minute had not been told yet: its run looks back at those before.
        one_back = {"cursor.since_ms": end - MINUTE, "next_run_at": 1}
        await database.jobs.update_one({"_id": job.id}, {"$set": one_back})
        runs = (await c.queue.get(job.id)).document["stats"]["success"]
        await c.queue.run(job.id)
        await c.until(job, lambda job: job.document["stats"]["success"] > runs)
        assert c.stored(since, end)[-4:] == truth[-4:]
        newest = c.store.rows(c.series, end - 2 * MINUTE, end).to_pylist()
        assert [row["ver"] for row in newest] == [2, 2]


async def test_a_revised_bar_is_told_anew_and_the_old_one_kept(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        until = c.first_ms + DAY
        wrong = c.truth(c.first_ms, until)[50]
        batch = CandleBatch.of([(*wrong[:4], wrong[4], wrong[5] + 1.0)])
        slot = Interval(int(wrong[0]), int(wrong[0]) + MINUTE)
        c.store.append_page(c.series, batch, slot, fence=1, known_at=1)
        job = await c.backfill(until)
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, until) == c.truth(c.first_ms, until)
        row = c.store.rows(c.series, slot.from_ms, slot.to_ms).to_pylist()[0]
        assert row["ver"] == 2
        before = c.store.rows(c.series, slot.from_ms, slot.to_ms, as_of=1).to_pylist()[0]
        assert (before["ver"], before["v"]) == (1, wrong[5] + 1.0)
