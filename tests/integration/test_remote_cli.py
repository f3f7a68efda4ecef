"""The command line over COLLECTOR_URL: the same output, JSON and exit codes as with a database."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from api.app import Door
from collector.exchanges.port import Ticker
from collector.history.terms import HistoryTerms
from collector.keys import ApiKeys
from collector.market.trade import Trade
from collector.markets.tickers import TickerBoard
from collector.store.store import Store
from collector.store.trades import append_trades
from tests.support.bars import BTC, T0, bars, span
from tests.support.local_api import know_markets, serving
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.databases import Shelf
    from tests.support.verbs import Ended

    Cli = Callable[[str], Awaitable[Ended]]

KEY = "an-admins-key"
VIEWER = "a-viewers-key"
KEYS = ApiKeys.parse(
    ",".join(
        f"{role}:{hashlib.sha256(key.encode()).hexdigest()}"
        for role, key in (("admin", KEY), ("viewer", VIEWER))
    )
)
STORY = [
    "status",
    "status --json",
    "troubles",
    "connector list",
    "job list",
    "connector add simulated --rate-limit 7 --period-ms 5000 --json",
    "connector add simulated --rate-limit 9",
    "connector add binanse",
    "connector show simulatde",
    "connector show kraken",
    "connector show simulated",
    "connector show simulated --json",
    "connector set simulated --rate-limit 11 --period 2s --max-concurrent-jobs 3 --notes ours",
    "connector set simulated --max-concurrent-jobs none --window 6000:weight/1m --json",
    "connector set simulated --circuit circuit_min_closed_sec=90 --json",
    "connector set simulated --circuit circuit_min_close=90",
    "connector set simulated --rate-limit 0",
    "connector set simulated",
    "connector pause simulated --until 2h",
    "connector pause simulated --until 2025-01-01",
    "connector resume simulated",
    "connector unblock simulated",
    "connector list",
    "markets simulated --search btc",
    "markets simulated --search */USDT --limit 2 --json",
    "markets simulated --search doge",
    "add simulated BTC/USDT ETHUSDT --timeframes 1m,1h --since 2024-01-01",
    "add simulated BTC/USDT --timeframes 1m --since 2024-01-01 --json",
    "add simulated BTC/USTD",
    "add simulated */EUR --yes",
    "add simulated */USDT --timeframes 1d --since 2024-01-01",
    "add simulated */USDT --timeframes 1d --since 2024-01-01 --yes",
    "job list --exchange simulated --type ohlcv_backfill",
    "job list --symbol BTCUSDT --json",
    "job list --symbol BTCUSDT --limit 1 --type markets_refresh",
    "job list --state asleep",
    "job list --cursor x",
    "job show simulated BTC/USDT 1m ohlcv_backfill",
    "job show simulated BTCUSDT 1m ohlcv_backfill --json",
    "job show simulated SOL/USDT",
    "job show 000000000000000000000000",
    "job show nonsense",
    "job add simulated tickers_snapshot --interval-ms 60000 --json",
    "job add simulated ohlcv_backfill --symbol BTC/USDT --timeframe 7m",
    "job add simulated ohlcv_backfil --symbol BTC/USDT --timeframe 1m",
    "job add kraken tickers_snapshot",
    "job pause simulated ETH/USDT 1h ohlcv_incremental",
    "job run simulated ETH/USDT 1h ohlcv_incremental",
    "job resume simulated ETH/USDT 1h ohlcv_incremental --json",
    "job pause --symbol BTCUSDT --type ohlcv_backfill",
    "job resume --state paused --json",
    "job remove simulated ETH/USDT 1h ohlcv_backfill",
    "tickers simulated",
    "tickers simulated BTCUSDT --json",
    "tickers simulated BTC/USTD",
    "read binance BTC/USDT 1m --limit 3",
    "read binance BTCUSDT 1m --since 2024-01-01T00:02Z --limit 2 --json",
    "read binance BTC/USDT 1m --gaps omit --until 2024-01-01T00:08Z --limit 2",
    "read binance BTC/USTD 1m",
    "read binance BTC/USDT 1x",
    "read binance BTC/USDT 1m --since 2025-01-01",
    "export binance BTC/USDT 1m --out -  --format csv",
    "trades binance BTC/USDT --limit 2",
    "trades binance BTC/USDT --since 2024-01-01 --limit 2 --json",
    "trades binance ETH/USDT",
    "quarantine binance",
    "coverage binance BTC/USDT --timeframe 1m --json",
    "report missing binance --timeframe 1m",
    "report validation binance BTCUSDT",
    "coverage binanse",
    "coverage binance BTC/USTD",
    "market-rate riemann 1:GOLD 1:OIL",
    "market-rate riemann 1:OIL 1:GOLD",
    "volume riemann 1:GOLD 1:OIL --json",
    "volume nowhere 1:GOLD 1:OIL",
    "status",
    "status --json",
    "troubles --json",
    "connector remove simulated",
    "connector remove simulated --cascade --json",
    "connector show simulated",
]


def stage(root: Path) -> None:
    """Ten minutes with a hole, and a few trades."""
    prices = {n: 100.0 + n for n in range(10) if n != 4}
    Store(root).append_page(BTC, bars(prices), span(0, 10), fence=1, known_at=1_000)
    trades = [Trade(str(n), T0 + n * 1000, 100.5 + n, 0.25, "buy") for n in range(5)]
    append_trades(Store(root).storage, "binance", "BTC/USDT", trades, known_at=1)


async def prepare(database: Database) -> None:
    await know_markets(database)
    told = [Ticker(symbol, 1.5, None, 1.6, 10.0, ts=5_000) for symbol in ("BTC/USDT", "ETH/USDT")]
    await TickerBoard(database).save("simulated", told)


def comparable(ended: Ended) -> tuple[int, list[str], list[str]]:
    """Without what differs between two moments and two databases.

    Jobs that are made together are listed in any order.
    """

    def plain(text: str) -> list[str]:
        text = re.sub(r"\b[0-9a-f]{24}\b", "JOB", text)
        text = re.sub(r"\b1[789]\d{11}\b", "MS", text)
        text = re.sub(r'"2\d{3}-\d\d-\d\dT[\d:.]+Z"', '"DATE"', text)
        text = re.sub(r"\b202[6-9]-\d\d-\d\d \d\d:\d\d(:\d\d)?", "DATE", text)
        text = re.sub(r"\b(in )?\d+ (s|min|h|d)( ago)?\b|\bnow\b", "AGE", text)
        text = re.sub(r"\b\d[\d,.]{5,}%?|\d\.\d{10,}|\d+\.\d{4}%", "N", text)
        text = re.sub(r"\d+ bars of 1[mhd]\b", "LAG", text)
        text = re.sub(r'"lag": \{[^}]*\}', '"lag": {}', text)
        text = re.sub(r"(: |; )(?=JOB)", "\n", text)
        return sorted(re.sub(r"[ \t]+", " ", text).splitlines())

    out = ended.out
    if out.startswith("{"):
        out = "\n".join(
            json.dumps(each, sort_keys=True)
            for value in json.loads(out).items()
            for each in (value[1] if isinstance(value[1], list) else [value])
        )
    return ended.code, plain(out), plain(ended.err)


async def told(story: list[str], cli: Cli) -> list[tuple[str, tuple[int, list[str], list[str]]]]:
    return [(line, comparable(await cli(line))) for line in story]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_HISTORY__NETWORKS", '["riemann"]')
    monkeypatch.chdir(tmp_path)
    stage(tmp_path / "data")
    return tmp_path


def by_database(database: Database, mongo_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)


def by_api(client: Any, monkeypatch: pytest.MonkeyPatch, key: str = KEY) -> None:
    monkeypatch.delenv("COLLECTOR_MONGO_URI", raising=False)
    monkeypatch.setenv("COLLECTOR_URL", str(client.session._base_url))
    monkeypatch.setenv("COLLECTOR_TOKEN", key)


async def cli(line: str) -> Ended:
    return await run_here(*line.split())


async def test_every_verb_answers_the_same_here_and_over_an_api(
    shelf: Shelf, mongo_uri: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shelf.database() as one, shelf.database() as other:
        await prepare(one)
        await prepare(other)
        by_database(one, mongo_uri, monkeypatch)
        here = await told(STORY, cli)
        terms, door = HistoryTerms(("riemann",)), Door(keys=KEYS)
        async with serving(other, home / "data", door=door, history=terms) as client:
            by_api(client, monkeypatch)
            there = await told(STORY, cli)
    for mine, its in zip(here, there, strict=True):
        assert mine == its
    assert {code for _, (code, _, _) in here} == {0, 1, 2, 3, 5, 10}


async def test_a_file_is_the_same_whether_it_is_exported_here_or_over_an_api(
    database: Database, mongo_uri: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def exported(name: str) -> dict[str, bytes]:
        found = {}
        for form in ("csv", "parquet", "arrow"):
            out = home / f"{name}.{form}"
            for words in (
                f"export binance BTC/USDT 1m --out {out}",
                f"trades binance BTC/USDT --force --out {out}.{form}",
            ):
                ended = await cli(f"{words} --json")
                assert ended.facts["rows"] in (5, 10)
            found[form] = out.read_bytes() + out.with_name(f"{out.name}.{form}").read_bytes()
        return found

    by_database(database, mongo_uri, monkeypatch)
    here = await exported("here")
    async with serving(database, home / "data", door=Door(keys=KEYS)) as client:
        by_api(client, monkeypatch, VIEWER)
        assert await exported("there") == here


async def test_a_key_that_is_not_accepted_or_not_enough_is_one_line(
    database: Database, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(database, home / "data", door=Door(keys=KEYS)) as client:
        by_api(client, monkeypatch, "wrong")
        for line in ("status", "read binance BTC/USDT 1m", "connector add simulated"):
            ended = await cli(line)
            assert (ended.code, ended.out) == (9, "")
            assert ended.err.startswith("E_AUTH: the API does not accept this key")
        by_api(client, monkeypatch, VIEWER)
        ended = await cli("connector add simulated")
        assert (ended.code, ended.err) == (
            9,
            "E_AUTH: this needs the role operator, the key has viewer\n",
        )


async def test_what_needs_the_database_or_the_files_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_URL", "http://127.0.0.1:9")
    for verb in ("plan", "apply", "backup there", "restore there", "logs"):
        ended = await cli(verb)
        name = verb.split()[0]
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"E_USAGE: {name} needs the database and the files themselves")
        assert ended.err.count("\n") == 1


async def test_an_api_that_is_away_or_none_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in ("http://127.0.0.1:9", "nonsense", "http://[::1"):
        monkeypatch.setenv("COLLECTOR_URL", url)
        for line in ("status", "read binance BTC/USDT 1m", "job list"):
            ended = await cli(line)
            assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)
            assert ended.err.startswith("E_API: ")
