"""`make run`: stopped half-way, started again, equal to the truth, and found sound by `datalayer`.

This is also the integration test of the datalayer specification: five symbols over a year, 200
random minutes compared with the exchange, the reports, files with their hashes, and new bars at
most a bar late.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from collector.market.series import Series
from collector.mongo.client import Database
from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.home import announced_uri
from collector.simulated.journal import read_journal
from collector.simulated.listing import listings
from collector.simulated.truth import Truth
from collector.store.store import Store
from tests.support.until import until
from tests.support.verbs import run_program

if TYPE_CHECKING:
    from pathlib import Path

KLINES = "/api/v3/klines"
MINUTE = 60_000


async def up(home: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from collector.cli.main import main; main()",
        "up",
        "--demo",
        env={**os.environ, "COLLECTOR_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )


async def exchange_of(process: asyncio.subprocess.Process) -> str:
    """Where the demo's exchange listens; the rest of the demo's output is read and dropped."""
    assert process.stdout is not None
    while line := (await process.stdout.readline()).decode():
        if "simulated exchange" in line and " at " in line:
            process.drained = asyncio.create_task(process.stdout.read())  # type: ignore[attr-defined]
            return line.rpartition(" ")[2].strip()
    raise AssertionError("the demo ended before its exchange listened")


async def datalayer(home: Path, exchange: str, *arguments: str) -> str:
    """Runs a verb beside the demo and returns its output."""
    demo = home / "demo"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "collector.cli.datalayer", *arguments, "--exchange", "simulated"),
        cwd=home,
        env={
            **os.environ,
            "COLLECTOR_HOME": str(demo),
            "COLLECTOR_MONGO_URI": str(announced_uri(demo)),
            "COLLECTOR_MONGO_DB": "collector_demo",
            "COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": exchange}),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


async def backfills(home: Path) -> list[dict[str, Any]]:
    """The demo's backfill jobs, as an onlooker sees them; none while it is not up."""
    uri = announced_uri(home / "demo")
    if uri is None:
        return []
    async with Database(uri, "collector_demo") as database:
        return await database.jobs.find({"type": "ohlcv_backfill"})


async def stop(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(120):
        assert await process.wait() == 0


async def test_a_second_run_resumes_and_the_year_equals_the_truth(tmp_path: Path) -> None:
    first = await up(tmp_path)
    await exchange_of(first)

    async def half_way() -> bool:
        jobs = await backfills(tmp_path)
        return len(jobs) == 5 and all(job["cursor"]["page"] > 100 for job in jobs)

    await until(half_way, "every series is some way along", 180)
    await stop(first)
    journal = tmp_path / "demo" / "exchange-journal.jsonl"
    sent_before = len(read_journal(journal))
    async with await EmbeddedMongo.start(tmp_path / "demo", purpose="reading cursors"):
        committed = {job["symbol"]: job["cursor"] for job in await backfills(tmp_path)}
    assert not all(cursor["done"] for cursor in committed.values()), "nothing left to resume"

    second = await up(tmp_path)
    exchange = await exchange_of(second)

    async def complete() -> bool:
        jobs = await backfills(tmp_path)
        return bool(jobs) and all(job["cursor"]["done"] for job in jobs)

    await until(complete, "the year is complete", 300)
    jobs = await backfills(tmp_path)
    # Before `validate`, which asks for random minutes of the whole year once more.
    asked = [entry for entry in read_journal(journal)[sent_before:] if entry.path == KLINES]
    assert asked
    await check_new_bars_come_in_time(tmp_path)
    await check_datalayer_finds_it_sound(tmp_path, exchange)
    await check_verbs_find_the_demo(tmp_path)
    await stop(second)
    for symbol, cursor in committed.items():
        starts = [e.start_ms or 0 for e in asked if e.symbol == symbol.replace("/", "")]
        # The first page begins at the last bar before the cursor.
        begun_ms = cursor["since_ms"] - 60_000
        assert min(starts) >= begun_ms, f"{symbol}: a committed page was asked again"
    for job in jobs:
        check_equal_to_the_truth(tmp_path / "demo" / "data", job)


async def check_new_bars_come_in_time(home: Path) -> None:
    """While it is live, no series is ever more than one bar behind the last that closed."""
    async with Database(str(announced_uri(home / "demo")), "collector_demo") as database:
        await database.read_server_clock()

        async def all_told() -> bool:
            live = await database.jobs.find({"type": "ohlcv_incremental"})
            now_ms = database.server_clock.now_ms()
            return len(live) == 5 and all(
                now_ms - job["cursor"]["since_ms"] <= 2 * MINUTE for job in live
            )

        await until(all_told, "every series is up to date")


async def check_datalayer_finds_it_sound(home: Path, exchange: str) -> None:
    tfs = "1m,5m,15m,1h"
    symbols = "BTCUSDT,ETHUSDT,SOLUSDT,XRPUSDT,LINKUSDT"
    await datalayer(home, exchange, "resample", "--symbols", symbols)
    for verb, out in (("validate", "validate.json"), ("missing-report", "missing.csv")):
        await datalayer(
            home, exchange, verb, "--symbols", symbols, "--tfs", tfs, "--out", f"reports/{out}"
        )
    report = json.loads((home / "reports" / "validate.json").read_text())
    assert len(report["series"]) == 5 * 4
    for series in report["series"]:
        wrong = [name for name, check in series["checks"].items() if not check["ok"]]
        assert not wrong, f"{series['symbol']} {series['tf']}: {wrong}"
        assert series["gaps_pct"] < 0.0001
    missing = (home / "reports" / "missing.csv").read_text().splitlines()
    named = "symbol,tf,ts_from,ts_to,gaps_pct,gaps_count,longest_gap_bars,exchange,"
    assert missing[0].startswith(named), "more columns may follow"
    for file in (home / "demo" / "data").glob("simulated/*-*/*.parquet"):
        footer = pq.read_metadata(file).metadata
        assert {b"data_hash", b"build_signature", b"source", b"generated_at"} <= footer.keys()


async def check_verbs_find_the_demo(home: Path) -> None:
    """With `--demo` all is well; without it a verb says that there is one, and how to see it."""
    here = {"COLLECTOR_HOME": str(home)}
    cli = ("collector.cli",)
    well = await run_program(*cli, "doctor", "--demo", "--ask", "--json", cwd=home, env=here)
    problems = [each for each in json.loads(well.out)["findings"] if each["level"] == "problem"]
    assert (well.code, problems) == (0, [])
    assert "simulated: answered a request" in well.out
    plain = await run_program(*cli, "status", "--json", cwd=home, env=here)
    assert plain.facts["connectors"] == []
    assert plain.err.startswith("a demo is running at http://127.0.0.1:"), plain.err
    assert plain.err.endswith(": --demo shows it\n")


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
