"""The command line as a script sees it: real processes, exit codes, JSON on standard output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from collector.connectors.market_book import MarketBook
from collector.connectors.ticker_board import TickerBoard
from collector.exchanges.port import Market, Markets, Ticker
from collector.jobs.job import EXCHANGE_DUTIES
from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.home import announced_uri
from tests.integration.serving import know_markets
from tests.integration.verbs import Ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from collector.mongo.client import Database

    Cli = Callable[[str], Awaitable[Ended]]

DUTIES = len(EXCHANGE_DUTIES)


async def collector(*arguments: str, cwd: Path, **environment: str) -> Ended:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "collector.cli",
        *arguments,
        cwd=cwd,
        env={**os.environ, "COLLECTOR_HOME": str(cwd), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
def cli(database: Database, mongo_uri: str, tmp_path: Path) -> Cli:
    """`await cli("job list --json")` on this test's own database."""
    where = {"COLLECTOR_MONGO_URI": mongo_uri, "COLLECTOR_MONGO_DB": database.raw.name}

    async def run(line: str) -> Ended:
        return await collector(*line.split(), cwd=tmp_path, **where)

    return run


async def test_a_connector_from_add_to_remove(cli: Cli) -> None:
    made, again = (
        (await cli("connector add simulated --rate-limit 7 --period-ms 5000 --json")).facts,
        (await cli("connector add simulated --rate-limit 9 --json")).facts,
    )
    assert (made["created"], again["created"]) == (True, False)
    assert made["connector"]["rate_limit"] == again["connector"]["rate_limit"] == 7
    listed = (await cli("connector list --json")).facts
    assert [each["exchange_id"] for each in listed["items"]] == ["simulated"]
    assert listed["next_cursor"] is None
    paused = (await cli("connector pause simulated --until 2h --json")).facts
    assert paused["status"] == "paused"
    assert paused["stopped"]["until"] == paused["paused_until"]
    assert "paused, ends in" in (await cli("connector show simulated")).out
    assert (await cli("connector resume simulated --json")).facts["status"] == "active"
    # Its own duties do not stand in the way.
    removed = (await cli("connector remove simulated --json")).facts
    assert (removed["status"], removed["jobs_removed"]) == ("deleted", DUTIES)
    gone = await cli("connector show simulated")
    assert (gone.code, gone.out) == (3, "")
    assert gone.err.startswith("E_API: there is no connector 'simulated': collector connector add")


async def test_the_short_way_and_the_life_of_a_job(cli: Cli) -> None:
    line = "add simulated BTC/USDT ETH/USDT --timeframes 1m,1h --since 2024-01-01 --json"
    first = (await cli(line)).facts
    assert first["connector_created"] is True
    assert (len(first["created"]), first["existing"]) == (8, [])
    second = (await cli(line)).facts
    assert (second["connector_created"], second["created"]) == (False, [])
    assert {job["id"] for job in second["existing"]} == {job["id"] for job in first["created"]}
    backfill = next(job for job in first["created"] if job["type"] == "ohlcv_backfill")
    assert backfill["cursor"]["since_ms"] == 1_704_067_200_000

    page = (await cli("job list --exchange simulated --symbol BTC/USDT --limit 3 --json")).facts
    assert len(page["items"]) == 3
    rest = f"job list --symbol BTC/USDT --limit 3 --cursor {page['next_cursor']} --json"
    last = (await cli(rest)).facts
    assert (len(last["items"]), last["next_cursor"]) == (1, None)

    job = backfill["id"]
    shown = (await cli(f"job show {job} --json")).facts
    assert (shown["id"], shown["runs"]) == (job, [])
    for verb, status, state in (
        ("pause", "paused", "idle"),
        ("resume", "active", "queued"),
        ("run", "active", "queued"),
    ):
        [moved] = (await cli(f"job {verb} {job} --json")).facts["items"]
        assert (moved["status"], moved["state"]) == (status, state)
    refused = await cli("connector remove simulated")
    assert (refused.code, refused.out) == (3, "")
    assert "has 8 active jobs" in refused.err
    other = first["created"][0]["id"]
    partly = await cli(f"job remove {job} {'0' * 24} {other} --json")
    assert partly.code == 3
    assert [item["status"] for item in json.loads(partly.out)["items"]] == ["deleted"] * 2
    assert partly.err == f"E_API: there is no job {'0' * 24}\n"
    assert (await cli("connector remove simulated --cascade --json")).facts[
        "jobs_removed"
    ] == 6 + DUTIES


async def test_one_job_by_hand_and_what_is_refused(cli: Cli, database: Database) -> None:
    missing = await cli("job add simulated ohlcv_incremental --symbol BTC/USDT --timeframe 1m")
    assert (missing.code, missing.err.split(":")[0]) == (3, "E_API")
    await cli("connector add simulated")
    market = Market("BTC/USDT", "BTCUSDT", "BTC", "USDT", "spot", True, None, {})
    await MarketBook(database).save(Markets("simulated", (market,), ("1m", "1h")))
    series = "--symbol BTC/USDT --timeframe 1m"
    made = await cli(f"job add simulated ohlcv_incremental {series} --interval-ms 60000 --json")
    assert made.facts["job"]["schedule"] == {"mode": "interval", "interval_ms": 60_000}
    assert made.err == "no worker is running: start one with `collector up` or `collector worker`\n"
    wrong = [
        ("ohlcv_backfill --symbol BTC/USTD --timeframe 1m", "did you mean BTC/USDT?"),
        ("ohlcv_backfill --symbol BTC/USDT --timeframe 7m", "has no timeframe '7m'"),
        (f"ohlcv_backfill {series} --since 2099-01-01", "is in the future"),
    ]
    endings = await asyncio.gather(*(cli(f"job add simulated {line}") for line, _ in wrong))
    for ended, (_, words) in zip(endings, wrong, strict=True):
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith("E_USAGE: ")
        assert words in ended.err


async def test_status_and_empty_states(cli: Cli) -> None:
    nothing, jobs = await asyncio.gather(cli("status"), cli("job list"))
    assert "no connectors yet: collector connector add binance" in nothing.out
    assert "workers: none alive" in nothing.out
    assert jobs.out == "no jobs yet: collector add binance BTC/USDT\n"
    await cli("add simulated BTC/USDT")
    facts = (await cli("status --json")).facts
    assert facts["jobs"] == {"queued": 2 + DUTIES}
    assert facts["connectors"][0]["lag"] == {"bars": 0, "timeframe": "1m"}
    assert facts["backfills"]["jobs"] == 1
    assert facts["workers"] == []


async def test_tickers_by_the_page_and_what_to_do_without_any(cli: Cli, database: Database) -> None:
    empty = await cli("tickers simulated")
    assert empty.out == "no tickers yet: collector job add simulated tickers_snapshot\n"
    none = {"items": [], "next_cursor": None}
    assert (await cli("tickers simulated BTC/USDT --json")).facts == none
    symbols = ("BTC/USDT", "ETH/USDT", "SOL/USDT")
    told = [Ticker(symbol, 1234.5, None, 1235.0, 10.0, ts=5_000) for symbol in symbols]
    await TickerBoard(database).save("simulated", told)
    await know_markets(database)
    page = (await cli("tickers simulated --limit 2 --json")).facts
    assert [each["symbol"] for each in page["items"]] == ["BTC/USDT", "ETH/USDT"]
    rest = f"tickers simulated --limit 2 --cursor {page['next_cursor']} --json"
    [last] = (await cli(rest)).facts["items"]
    assert last.pop("seen_at") > 5_000
    assert last == {
        "exchange_id": "simulated",
        "symbol": "SOL/USDT",
        "last": 1234.5,
        "bid": None,
        "ask": 1235.0,
        "volume": 10.0,
        "ts": 5_000,
    }
    shown = await cli("tickers simulated ETH/USDT")
    assert shown.out.splitlines()[1].split()[:5] == ["ETH/USDT", "1,234.5", "-", "1,235", "10"]
    wrong = await cli("tickers simulated ETH/USTD")
    assert (wrong.code, wrong.out) == (3, "")
    assert wrong.err.startswith("E_API: simulated told no ticker of 'ETH/USTD'; did you mean ETH/")


async def test_a_database_of_ones_own_must_be_migrated(
    empty_database: Database, mongo_uri: str, database_name: str, tmp_path: Path
) -> None:
    where = {"COLLECTOR_MONGO_DB": database_name}
    unprepared = await collector("status", cwd=tmp_path, COLLECTOR_MONGO_URI=mongo_uri, **where)
    assert (unprepared.code, unprepared.out) == (8, "")
    assert unprepared.err.startswith("E_CONFIG: ")
    assert "collector migrate up" in unprepared.err
    away = "mongodb://127.0.0.1:1/?directConnection=true"
    unreachable = await collector("status", cwd=tmp_path, COLLECTOR_MONGO_URI=away)
    assert (unreachable.code, unreachable.err.count("\n")) == (3, 1)
    assert unreachable.err.startswith("E_API: MongoDB cannot be reached")


async def test_the_embedded_one_is_started_and_prepared_or_joined(tmp_path: Path) -> None:
    made = await collector("connector", "add", "simulated", "--json", cwd=tmp_path)
    assert made.facts["created"] is True
    assert announced_uri(tmp_path) is None
    async with await EmbeddedMongo.start(tmp_path, purpose="somebody else"):
        listed = await collector("connector", "list", "--json", cwd=tmp_path)
    assert [each["exchange_id"] for each in listed.facts["items"]] == ["simulated"]
