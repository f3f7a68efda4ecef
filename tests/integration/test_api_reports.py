"""Coverage, missing and validation through REST."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from typing import TYPE_CHECKING

import pytest
from prometheus_client import REGISTRY

from api.app import Door
from api.roles import guarded_routes
from api.routes import ROUTERS, coverage
from collector.keys import ApiKeys, Role
from collector.market.series import Series
from collector.store.store import Store
from tests.integration.serving import serving
from tests.store_bars import BTC, ETH, at, bars, flat, span

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.integration.serving import Client

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
    assert item.pop("lag_bars") > 0
    assert item == {
        "exchange_id": "binance",
        "symbol": "BTC/USDT",
        "timeframe": "1m",
        "first_ts": at(0),
        "last_ts": at(99),
        "expected": 100,
        "present": 94,
        "no_trade": 1,
        "missing": 5,
        "longest_gap_bars": 5,
        "gaps_pct": 0.05,
    }
    labels = {"exchange": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}
    assert REGISTRY.get_sample_value("collector_gap_ratio", labels) == 0.05


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
    only = (await client.get(url, params={"exchange_id": "bybit"})).body
    assert [item["symbol"] for item in only["items"]] == ["SOL/USDT"]


async def test_a_timeframe_that_is_not_stored_is_made_of_minutes(client: Client) -> None:
    body = (await client.get(COVERAGE, params={"timeframe": "1h"})).body
    found = {item["symbol"]: item["expected"] for item in body["items"]}
    assert found == {"BTC/USDT": 1, "ETH/USDT": 1, "SOL/USDT": 1}


async def test_missing_names_the_worst_and_what_to_do(client: Client) -> None:
    body = (await client.get(MISSING, params={"timeframe": "1m"})).body
    first, second = body["items"]
    assert (first["symbol"], first["gaps_count"], first["gaps_pct"]) == ("BTC/USDT", 5, 0.05)
    assert second["gaps_count"] == 0
    assert body["summary"]["over_limit"] == ["binance BTC/USDT 1m"]
    [problem] = body["summary"]["worst"]
    assert (problem["ts_from"], problem["bars"]) == (at(20), 5)
    assert problem["advice"] == "load_again"
    assert len(body["summary"]["recommendations"]) == 1


async def test_validation_says_which_checks_failed(client: Client) -> None:
    body = (await client.get(VALIDATION, params={"timeframe": "1m"})).body
    btc, eth = body["items"]
    assert [name for name, check in btc["checks"].items() if not check["ok"]] == ["calendar"]
    assert btc["problem_intervals"] == [{"ts_from": at(20), "ts_to": at(25), "bars": 5}]
    assert all(check["ok"] for check in eth["checks"].values())
    assert body["summary"]["failed_checks"] == {"calendar": 1}
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
        assert body == {"items": [], "next_cursor": None}


async def test_a_long_report_does_not_stop_the_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests are answered while a report waits for its disk."""
    reading, released = threading.Event(), threading.Event()

    def slow(store: Store, series: Series) -> object:
        reading.set()
        assert released.wait(30)
        return real(store, series)

    real = coverage.coverage
    monkeypatch.setattr(coverage, "coverage", slow)
    report = asyncio.create_task(client.get(COVERAGE, params=ONE))
    try:
        assert await asyncio.to_thread(reading.wait, 30)
        assert (await client.get("/healthz")).status == 200
        assert not report.done()
    finally:
        released.set()
    assert (await report).status == 200


async def test_a_viewer_may_read_and_nobody_else(database: Database, root: Path) -> None:
    line = f"viewer:{hashlib.sha256(b'look').hexdigest()}"
    async with serving(database, root, door=Door(keys=ApiKeys.parse(line))) as client:
        for url in (COVERAGE, MISSING, VALIDATION):
            assert (await client.get(url)).status == 401
            assert (await client.get(url, key="look")).status == 200
    roles = {route.path: route.role for route in guarded_routes(ROUTERS)}
    assert {roles[url] for url in (COVERAGE, MISSING, VALIDATION)} == {Role.VIEWER}
