"""The command line as a script sees it: exit codes, JSON on standard output, errors as one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from collector.exchanges.port import Market, Markets, Ticker
from collector.jobs import settlement, types
from collector.jobs.leasing import Leasing
from collector.jobs.live_workers import LiveWorkers
from collector.markets.book import MarketBook
from collector.markets.tickers import TickerBoard
from tests.support.local_api import know_markets
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.verbs import Ended

    Cli = Callable[[str], Awaitable[Ended]]

DUTIES = len(types.duties())
CLI = ("collector.cli",)
ADD = (*CLI, "connector", "add", "simulated", "--json")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where verbs of this process keep everything, and where they run."""
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(database: Database, mongo_uri: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`await cli("job list --json")` on this test's own database."""
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)
    return lambda line: run_here(*line.split())


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
    assert "simulated was not blocked" in (await cli("connector unblock simulated")).out
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
    for line, words in wrong:
        ended = await cli(f"job add simulated {line}")
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith("E_USAGE: ")
        assert words in ended.err


async def test_a_parameter_of_a_job_by_hand(cli: Cli, database: Database) -> None:
    await cli("connector add simulated")
    await know_markets(database)
    add = "job add simulated price_stream"
    made = await cli(f"{add} --param symbols=BTCUSDT,ETH/USDT --param watch_bars=false --json")
    params = {"symbols": ["BTC/USDT", "ETH/USDT"], "watch_bars": False}
    assert made.facts["job"]["params"] == params
    for given, words in (
        ("symbols=BTC/USDX", "BTC/USDT"),
        ("watch_bars=often", "params.watch_bars"),
        ("symbols", "NAME=VALUE"),
    ):
        ended = await cli(f"{add} --param {given}")
        assert (ended.code, ended.out) == (2, "")
        assert words in ended.err


async def test_add_refuses_what_can_never_be_collected(cli: Cli, database: Database) -> None:
    wrong = [
        ("bitflyer BTC/JPY", "bitflyer serves no bars; a job of type ohlcv_from_trades"),
        ("binance BTC/USDT:USDT", "such markets are on binanceusdm"),
        ("binance 1h", "'1h' is a timeframe, not a market"),
    ]
    for line, words in wrong:
        ended = await cli(f"add {line}")
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith("E_USAGE: ")
        assert words in ended.err
    assert await database.connectors.count_documents({}) == 0


async def test_status_and_empty_states(cli: Cli) -> None:
    nothing, jobs = await cli("status"), await cli("job list")
    assert "no connectors yet: collector connector add binance" in nothing.out
    assert "workers: none alive" in nothing.out
    assert jobs.out == "no jobs yet: collector add binance BTC/USDT\n"
    await cli("add simulated BTC/USDT")
    ended = await cli("status --json")
    facts = json.loads(ended.out)
    assert (ended.code, [each["kind"] for each in facts["troubles"]]) == (1, ["no_worker"])
    assert facts["jobs"] == {"queued": 2 + DUTIES}
    assert facts["connectors"][0]["lag"] == {"bars": 0, "timeframe": "1m", "unconfirmed": 0}
    assert facts["backfills"]["jobs"] == 1
    assert facts["workers"] == []
    in_words = await cli("status")
    assert in_words.code == 1
    assert in_words.out.startswith("1 trouble:\n  ! no worker")
    assert "collector worker" in in_words.out.splitlines()[1]


async def test_status_exits_with_0_when_all_is_well(cli: Cli, database: Database) -> None:
    await cli("add simulated BTC/USDT")
    await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
    ended = await cli("status --json")
    assert (ended.code, json.loads(ended.out)["troubles"]) == (0, [])


async def test_the_list_of_jobs_has_their_reasons(cli: Cli, database: Database) -> None:
    await cli("add simulated BTC/USDT")
    leasing = Leasing(database, "ann")
    for lease in await leasing.claim("simulated", 2):
        await leasing.settle(lease, settlement.fail(lease.job, "no such market", "bad_request"))
    listed = await cli("job list --state failed")
    heading, *rows = listed.out.splitlines()
    assert heading.split()[-1] == "reason"
    assert [row.rstrip().endswith("no such market") for row in rows] == [True, True]


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
    assert wrong.err.startswith("E_API: simulated sent no ticker of 'ETH/USTD'; did you mean ETH/")


async def test_a_database_of_ones_own_must_be_migrated(cli: Cli, empty_database: Database) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLLECTOR_MONGO_DB", empty_database.raw.name)
        unprepared = await cli("status")
    assert (unprepared.code, unprepared.out) == (8, "")
    assert unprepared.err.startswith("E_CONFIG: ")
    assert "collector migrate up" in unprepared.err


async def test_a_database_that_is_away_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "COLLECTOR_MONGO_URI", "mongodb://%2Fnowhere%2Fmongod.sock/?directConnection=true"
    )
    unreachable = await run_here("status")
    assert (unreachable.code, unreachable.err.count("\n")) == (3, 1)
    assert unreachable.err.startswith("E_API: MongoDB cannot be reached")
