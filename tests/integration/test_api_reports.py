"""Coverage, missing and validation through REST."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import REGISTRY

from api.app import Door
from api.roles import guarded_routes
from api.routes import ROUTERS
from collector.jobs.job import Cursor, JobSpec
from collector.keys import ApiKeys, Role
from collector.market.series import Series
from collector.operations import series_reports
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at, bars, flat, span
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_api import Client

COVERAGE = "/api/v1/coverage"
MISSING = "/api/v1/reports/missing"
VALIDATION = "/api/v1/reports/validation"
SOL = Series.of("bybit", "SOL/USDT", "1h")
ONE = {"exchange_id": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BTC: 100 minutes, 10 without a trade, 20-24 missing. ETH: whole. SOL: one good hour."""
    root = tmp_path_factory.mktemp("lake")
    store = Store(root)
    for batch, stretch in (
        (bars({n: 100.0 for n in range(20) if n != 10}), span(0, 20)),
        (flat(25, 75), span(25, 100)),
    ):
        store.append_page(BTC, batch, stretch, fence=1, known_at=1_000)
    store.append_page(ETH, flat(0, 60), span(0, 60), fence=1, known_at=1_000)
    store.append_page(SOL, flat(0, 1), span(0, 60), fence=1, known_at=1_000)
    return root


async def test_coverage_of_one_series(client: Client) -> None:
    body = (await client.get(COVERAGE, params=ONE)).body
    assert body["next_cursor"] is None
    [item] = body["items"]
    late = item["lag_bars"]
    assert late > 1_000_000, "nothing came since 2024 began"
    share = item.pop("gaps_pct")
    assert share == (5 + late) / (100 + late)
    assert item == {
        "exchange_id": "binance",
        "symbol": "BTC/USDT",
        "timeframe": "1m",
        "first_ts": at(0),
        "last_ts": at(99),
        "expected": 100 + late,
        "present": 94,
        "partial": 0,
        "no_trade": 1,
        "missing": 5 + late,
        "head_missing": 0,
        "tail_missing": late,
        "longest_gap_bars": late,
        "lag_bars": late,
        "unconfirmed": 0,
    }
    labels = {"exchange": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}
    assert REGISTRY.get_sample_value("collector_gap_ratio", labels) == share


async def test_the_calendar_begins_where_a_job_asked_and_ends_with_the_listing(
    database: Database, root: Path
) -> None:
    cursor = Cursor(since_ms=at(-1440), until_ms=at(100))
    spec = JobSpec("binance", "ohlcv_backfill", "BTC/USDT", "1m", cursor=cursor)
    gone = {"exchange_id": "binance", "symbol": "ETH/USDT", "active": False}
    await database.markets.insert_many([{**gone, "delisted_at": at(100)}])
    async with serving(database, root) as client:
        await client.services.queue.add(spec)
        for url in (COVERAGE, MISSING, VALIDATION):
            btc, eth = (await client.get(url, params={"timeframe": "1m"})).body["items"]
            assert btc["head_missing"] == 1440
            assert btc["expected"] == 1540 + btc["lag_bars"]
            assert (eth["expected"], eth["tail_missing"], eth["lag_bars"]) == (60, 0, 0)


@pytest.mark.parametrize("url", [COVERAGE, MISSING, VALIDATION])
async def test_lists_come_in_pages_and_in_order(client: Client, url: str) -> None:
    found, cursor = [], None
    while True:
        params = {"limit": "1"} | ({} if cursor is None else {"cursor": cursor})
        body = (await client.get(url, params=params)).body
        assert len(body["items"]) == 1
        found.append(body["items"][0]["symbol"])
        cursor = body["next_cursor"]
        if cursor is None:
            break
    assert found == ["BTC/USDT", "ETH/USDT", "SOL/USDT"]
    some = (await client.get(url, params={"search": "ethusdt"})).body
    assert [item["symbol"] for item in some["items"]] == ["ETH/USDT"]
    only = (await client.get(url, params={"exchange_id": "bybit"})).body
    assert [item["symbol"] for item in only["items"]] == ["SOL/USDT"]


async def test_a_timeframe_that_is_not_stored_is_made_of_minutes(client: Client) -> None:
    body = (await client.get(COVERAGE, params={"timeframe": "1h"})).body
    found = {item["symbol"]: item["expected"] for item in body["items"]}
    assert found.keys() == {"BTC/USDT", "ETH/USDT", "SOL/USDT"}
    present = {item["symbol"]: item["present"] for item in body["items"]}
    assert present == {"BTC/USDT": 1, "ETH/USDT": 1, "SOL/USDT": 1}


async def test_missing_names_the_worst_and_what_to_do(client: Client) -> None:
    body = (await client.get(MISSING, params={"timeframe": "1m"})).body
    first, second = body["items"]
    assert (first["symbol"], first["gaps_count"]) == ("BTC/USDT", 5 + first["tail_missing"])
    assert second["gaps_count"] == second["tail_missing"] > 0
    assert body["summary"]["over_limit"] == ["binance BTC/USDT 1m", "binance ETH/USDT 1m"]
    *tails, problem = body["summary"]["worst"]
    assert [tail["ts_from"] for tail in tails] == [at(60), at(100)]
    assert {tail["advice"] for tail in tails} == {"check_delisting_or_rename"}
    assert (problem["ts_from"], problem["bars"]) == (at(20), 5)
    assert problem["advice"] == "load_again"
    assert len(body["summary"]["recommendations"]) == 3


async def test_validation_says_which_checks_failed(client: Client) -> None:
    body = (await client.get(VALIDATION, params={"timeframe": "1m"})).body
    btc, eth = body["items"]
    assert [name for name, check in btc["checks"].items() if not check["ok"]] == ["calendar"]
    hole, tail = btc["problem_intervals"]
    assert hole == {"ts_from": at(20), "ts_to": at(25), "bars": 5}
    assert (tail["ts_from"], tail["bars"]) == (at(100), btc["tail_missing"])
    assert [name for name, check in eth["checks"].items() if not check["ok"]] == ["calendar"]
    assert body["summary"]["failed_checks"] == {"calendar": 2}
    assert body["build_signature"].startswith("collector/")


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"exchange_id": "binanse"}, "unknown_exchange"),
        ({"exchange_id": "../binance"}, "unknown_exchange"),
        ({"timeframe": "1x"}, "unknown_timeframe"),
        ({"cursor": "nonsense"}, "bad_cursor"),
        ({"limit": "0"}, "invalid_request"),
        ({"symbols": "BTC/USDT"}, "invalid_request"),
    ],
)
async def test_what_cannot_be_is_refused(client: Client, params: dict[str, str], code: str) -> None:
    answer = await client.get(COVERAGE, params=params)
    assert answer.status == 422
    codes = {answer.code, *(error["code"] for error in answer.body["errors"])}
    assert code in codes


async def test_nothing_stored_by_that_name_is_an_empty_list(client: Client) -> None:
    for symbol in ("NO/SUCH", "../../etc"):
        body = (await client.get(COVERAGE, params={"symbol": symbol})).body
        assert (body["items"], body["next_cursor"]) == ([], None)


async def test_a_long_report_does_not_stop_the_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests are answered while a report waits for its disk."""
    reading, released = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> object:
        reading.set()
        assert released.wait(30)
        return real(*arguments)

    real = series_reports.coverage
    monkeypatch.setattr(series_reports, "coverage", slow)
    fresh = {"Cache-Control": "no-cache"}
    report = asyncio.create_task(client.get(COVERAGE, params=ONE, headers=fresh))
    try:
        assert await asyncio.to_thread(reading.wait, 120)
        assert (await client.get("/healthz")).status == 200
        assert not report.done()
    finally:
        released.set()
    assert (await report).status == 200


async def test_a_report_is_kept_for_a_moment_and_has_its_age(client: Client) -> None:
    fresh = {"Cache-Control": "no-cache"}
    for url in (COVERAGE, MISSING, VALIDATION):
        made = await client.get(url, params=ONE, headers=fresh)
        kept = await client.get(url, params=ONE)
        assert kept.body == made.body
        assert kept.body["generated_at"].endswith("Z")
        assert 0 <= int(kept.headers["Age"]) <= 15
        assert kept.headers["Cache-Control"].startswith("private, max-age=")
        other = await client.get(url, params={**ONE, "symbol": "ETH/USDT"})
        assert other.body["items"][0]["symbol"] == "ETH/USDT"
        short = await client.get(url, params={**ONE, "symbol": "BTCUSDT"})
        assert short.body["items"] == made.body["items"]


async def test_a_report_ends_when_its_reader_has_gone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, ended = threading.Event(), threading.Event()

    def endless(_store: Any, _series: Any, _expected: Any, on_rows: Any) -> None:
        reading.set()
        try:
            while True:
                on_rows(1)
        finally:
            ended.set()

    monkeypatch.setattr(series_reports, "coverage", endless)
    fresh = {"Cache-Control": "no-cache"}
    report = asyncio.create_task(client.get(COVERAGE, params=ONE, headers=fresh))
    assert await asyncio.to_thread(reading.wait, 30)
    report.cancel()
    assert await asyncio.to_thread(ended.wait, 30)


async def test_a_viewer_may_read_and_nobody_else(database: Database, root: Path) -> None:
    line = f"viewer:{hashlib.sha256(b'look').hexdigest()}"
    async with serving(database, root, door=Door(keys=ApiKeys.parse(line))) as client:
        for url in (COVERAGE, MISSING, VALIDATION):
            assert (await client.get(url)).status == 401
            assert (await client.get(url, key="look")).status == 200
    roles = {route.path: route.role for route in guarded_routes(ROUTERS)}
    assert {roles[url] for url in (COVERAGE, MISSING, VALIDATION)} == {Role.VIEWER}
