"""`make run`: stopped half-way, started again, and equal to the truth."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from collector.exchanges.simulated.journal import read_journal
from collector.exchanges.simulated.listing import listings
from collector.exchanges.simulated.truth import Truth
from collector.market.series import Series
from collector.mongo.client import Database
from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.home import announced_uri
from collector.store.store import Store
from tests.acceptance.processes import eventually

if TYPE_CHECKING:
    from pathlib import Path

KLINES = "/api/v3/klines"


async def up(home: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from collector.cli.main import main; main()",
        "up",
        "--demo",
        env={**os.environ, "COLLECTOR_HOME": str(home)},
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )


async def backfills(home: Path) -> list[dict[str, Any]]:
    """The demo's backfill jobs, as an onlooker sees them; none while it is not up."""
    uri = announced_uri(home / "demo")
    if uri is None:
        return []
    async with Database(uri, "collector_demo") as database:
        return await database.jobs.find({"type": "ohlcv_backfill"})


async def stop(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(60):
        assert await process.wait() == 0


async def test_a_second_run_resumes_and_the_year_equals_the_truth(tmp_path: Path) -> None:
    first = await up(tmp_path)

    async def half_way() -> bool:
        jobs = await backfills(tmp_path)
        return len(jobs) == 5 and all(job["cursor"]["page"] > 100 for job in jobs)

    await eventually(half_way, "every series is some way along", 180)
    await stop(first)
    journal = tmp_path / "demo" / "exchange-journal.jsonl"
    sent_before = len(read_journal(journal))
    async with await EmbeddedMongo.start(tmp_path / "demo", purpose="reading cursors"):
        committed = {job["symbol"]: job["cursor"] for job in await backfills(tmp_path)}
    assert not all(cursor["done"] for cursor in committed.values()), "nothing left to resume"

    second = await up(tmp_path)

    async def complete() -> bool:
        jobs = await backfills(tmp_path)
        return bool(jobs) and all(job["cursor"]["done"] for job in jobs)

    await eventually(complete, "the year is complete", 300)
    jobs = await backfills(tmp_path)
    await stop(second)
    asked = [entry for entry in read_journal(journal)[sent_before:] if entry.path == KLINES]
    assert asked
    for symbol, cursor in committed.items():
        starts = [e.start_ms or 0 for e in asked if e.symbol == symbol.replace("/", "")]
        assert min(starts) >= cursor["since_ms"], f"{symbol}: a committed page was asked again"
    for job in jobs:
        check_equal_to_the_truth(tmp_path / "demo" / "data", job)


def check_equal_to_the_truth(root: Path, job: dict[str, Any]) -> None:
    progress = job["progress"]
    series = Series.of("simulated", job["symbol"], "1m")
    table = Store(root).rows(series, progress["from_ms"], progress["until_ms"])
    truth = Truth(7, listings(5), ()).bars(
        job["symbol"].replace("/", ""), "1m", progress["from_ms"], progress["until_ms"]
    )
    columns = truth.columns()
    names = {"ts": "ts", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume"}
    assert table.num_rows == len(columns["ts"]) >= 365 * 1440 - 1
    for ours, theirs in names.items():
        assert table.column(ours).to_pylist() == list(columns[theirs]), ours
