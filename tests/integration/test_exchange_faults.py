"""An exchange that misbehaves in every way it knows: the lake still ends up with the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from collector.backoff import Backoff
from collector.exchanges.simulated.faults.catalogue import parse_faults
from collector.jobs.job import Cursor
from collector.jobs.states import State, Status
from tests.integration.collecting import DAY, MINUTE, collecting
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
