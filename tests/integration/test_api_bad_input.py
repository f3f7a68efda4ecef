"""Bad input: 4xx with field, reason and code; never a 5xx, never a surprise."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from yarl import URL

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from tests.support.local_api import fresh_database, know_markets, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.local_api import Client

CONNECTORS, JOBS, STREAMS = "/api/v1/connectors", "/api/v1/jobs", "/api/v1/streams"
CANDLES, MARKETS = "/api/v1/candles", "/api/v1/markets"
TRADES, TICKERS = "/api/v1/trades", "/api/v1/tickers"
JOB = {
    "exchange_id": "simulated",
    "type": "ohlcv_incremental",
    "symbol": "BTC/USDT",
    "timeframe": "1m",
}
BACKFILL = {**JOB, "type": "ohlcv_backfill"}
STREAM = {"exchange_id": "simulated", "symbols": ["BTC/USDT"], "timeframes": ["1m"]}
SERIES = {"exchange_id": "simulated", "symbol": "BTC/USDT", "timeframe": "1m"}
MARKET = {"exchange_id": "simulated", "symbol": "BTC/USDT"}
DATE = 1_735_689_600_000
FUTURE = "2199-01-01"

BODIES: list[tuple[str, dict[str, Any] | list[Any] | str, str]] = [
    (CONNECTORS, {}, "exchange_id"),
    (CONNECTORS, [], "body"),
    (CONNECTORS, "simulated", "body"),
    (CONNECTORS, {"exchange_id": {"$ne": None}}, "exchange_id"),
    (CONNECTORS, {"exchange_id": 5}, "exchange_id"),
    (CONNECTORS, {"exchange_id": "../etc"}, "exchange_id"),
    (CONNECTORS, {"exchange_id": "$where"}, "exchange_id"),
    (CONNECTORS, {"exchange_id": "simulated\x00"}, "exchange_id"),
    (CONNECTORS, {"exchange_id": "x" * 65}, "exchange_id"),
    (CONNECTORS, {"exchange_id": "simulated", "rate_limit": 0}, "rate_limit"),
    (CONNECTORS, {"exchange_id": "simulated", "rate_limit": -1}, "rate_limit"),
    (CONNECTORS, {"exchange_id": "simulated", "rate_limit": 10**30}, "rate_limit"),
    (CONNECTORS, {"exchange_id": "simulated", "rate_limit": "20"}, "rate_limit"),
    (CONNECTORS, {"exchange_id": "simulated", "rate_limit": 2.5}, "rate_limit"),
    (CONNECTORS, {"exchange_id": "simulated", "rate_limit": True}, "rate_limit"),
    (CONNECTORS, {"exchange_id": "simulated", "ratelimit": 5}, "ratelimit"),
    (CONNECTORS, {"exchange_id": "simulated", "algorithm": "hope"}, "algorithm"),
    (CONNECTORS, {"exchange_id": "simulated", "windows": [{"limit": 1}]}, "windows.0.period_ms"),
    (CONNECTORS, {"exchange_id": "simulated", "notes": "\ud800"}, "notes"),
    (CONNECTORS, {"exchange_id": "simulated", "\ud800": 1}, "body"),
    (JOBS, {**JOB, "type": "rm -rf"}, "type"),
    (JOBS, {**JOB, "type": {"$gt": ""}}, "type"),
    (JOBS, {**JOB, "symbol": None}, "symbol"),
    (JOBS, {**JOB, "timeframe": None}, "timeframe"),
    (JOBS, {**JOB, "symbol": "../../secrets"}, "symbol"),
    (JOBS, {**JOB, "symbol": "$where"}, "symbol"),
    (JOBS, {**JOB, "symbol": {"$ne": "x"}}, "symbol"),
    (JOBS, {**JOB, "symbol": "BTC/USDT\x00"}, "symbol"),
    (JOBS, {**JOB, "timeframe": "7x"}, "timeframe"),
    (JOBS, {**JOB, "timeframe": "0m"}, "timeframe"),
    (JOBS, {**JOB, "since": FUTURE}, "since"),
    (JOBS, {**JOB, "since": -1}, "since"),
    (JOBS, {**JOB, "since": 10**30}, "since"),
    (JOBS, {**JOB, "since": 1.5}, "since"),
    (JOBS, {**JOB, "since": 0.5}, "since"),
    (JOBS, {**JOB, "since": 1735689600000.5}, "since"),
    (JOBS, {**JOB, "since": True}, "since"),
    (JOBS, {**JOB, "since": "yesterday"}, "since"),
    (JOBS, {**JOB, "since": "2025"}, "since"),
    (JOBS, {**JOB, "since": 5}, "since"),
    (JOBS, {**JOB, "since": 20251301}, "since"),
    (JOBS, {**JOB, "since": "1735689600000"}, "since"),
    (JOBS, {**JOB, "since": "0001-01-01"}, "since"),
    (JOBS, {**JOB, "until": "2025-01-01"}, "until"),
    (JOBS, {**BACKFILL, "since": "2025-01-02", "until": "2025-01-01"}, "until"),
    (JOBS, {**BACKFILL, "cursor": {"since_ms": DATE, "until_ms": DATE - 1}}, "until"),
    (JOBS, {**BACKFILL, "since": DATE, "cursor": {"since_ms": DATE}}, "cursor"),
    (JOBS, {**BACKFILL, "cursor": {"done": True}}, "cursor.done"),
    (JOBS, {**JOB, "type": "gap_backfill", "since": DATE}, "until"),
    (JOBS, {**JOB, "type": "markets_refresh"}, "symbol"),
    (JOBS, {**JOB, "priority": -1}, "priority"),
    (JOBS, {**JOB, "priority": 1001}, "priority"),
    (JOBS, {**JOB, "state": "running"}, "state"),
    (JOBS, {**JOB, "fence": 99}, "fence"),
    (JOBS, {**JOB, "schedule": {"mode": "sometimes"}}, "schedule"),
    (JOBS, {**JOB, "schedule": {"mode": "interval"}}, "schedule.interval.interval_ms"),
    (
        JOBS,
        {**JOB, "schedule": {"mode": "interval", "interval_ms": 999}},
        "schedule.interval.interval_ms",
    ),
    (JOBS, {**JOB, "schedule": {"mode": "cron", "expression": "at noon"}}, "schedule"),
    (
        JOBS,
        {**JOB, "schedule": {"mode": "cron", "expression": "0 0 30 2 *"}},
        "schedule",
    ),
    (JOBS, {**JOB, "schedule": {"mode": "bar_close", "timeframe": "zz"}}, "schedule"),
    (JOBS, {**JOB, "params": {"$where": 1}}, "params.$where.[key]"),
    (JOBS, {**JOB, "params": {"steps": {"deep": 1}}}, "params.steps"),
    (JOBS, {**JOB, "params": {"steps": 2**63}}, "params.steps"),
    (JOBS, {**JOB, "params": {"steps": "a\nb"}}, "params.steps"),
    (JOBS, {**JOB, "params": {"steps": "\ud800"}}, "params.steps"),
    (JOBS, {**JOB, "params": {"steps": ["a"]}}, "params.steps"),
    (JOBS, {**JOB, "params": {"symbols": ["a", 1]}}, "params.symbols"),
    (JOBS, {**JOB, "params": {"symbols": [["a"]]}}, "params.symbols"),
    (JOBS, {**JOB, "params": {"symbols": ["a" * 101]}}, "params.symbols"),
    (JOBS, {**JOB, "params": {"symbols": ["a"] * 1001}}, "params.symbols"),
    (STREAMS, {**STREAM, "symbols": []}, "symbols"),
    (STREAMS, {**STREAM, "symbols": "BTC/USDT"}, "symbols"),
    (STREAMS, {**STREAM, "symbols": ["BTC/USDT"] * 101}, "symbols"),
    (STREAMS, {**STREAM, "timeframes": ["1m", "zz"]}, "timeframes"),
    (STREAMS, {**STREAM, "since": FUTURE}, "since"),
    (f"{CONNECTORS}/simulated/pause", {"until": "never"}, "until"),
    (f"{CONNECTORS}/simulated/pause", {"untill": 5}, "untill"),
]
QUERIES: list[tuple[str, dict[str, str], str]] = [
    (JOBS, {"limit": "0"}, "limit"),
    (JOBS, {"limit": "1001"}, "limit"),
    (JOBS, {"limit": "many"}, "limit"),
    (JOBS, {"cursor": "$gt"}, "cursor"),
    (JOBS, {"cursor": "../jobs"}, "cursor"),
    (JOBS, {"stauts": "active"}, "stauts"),
    (JOBS, {"status": "$ne"}, "status"),
    (JOBS, {"status[$ne]": "active"}, "status[$ne]"),
    (JOBS, {"symbol": "BTC\x00"}, "symbol"),
    (CONNECTORS, {"limit": "0"}, "limit"),
    (MARKETS, {}, "exchange_id"),
    (MARKETS, {"exchange_id": "../etc"}, "exchange_id"),
    (MARKETS, {"exchange_id": "simulated", "active": "perhaps"}, "active"),
    (CANDLES, {}, "exchange_id"),
    (CANDLES, {**SERIES, "exchange_id": "../../etc"}, "exchange_id"),
    (CANDLES, {**SERIES, "symbol": "../../passwd"}, "symbol"),
    (CANDLES, {**SERIES, "symbol": "é" * 100}, "symbol"),
    (CANDLES, {**SERIES, "symbol": "\x00"}, "symbol"),
    (CANDLES, {**SERIES, "timeframe": "../1m"}, "timeframe"),
    (CANDLES, {**SERIES, "start": "5", "end": "5"}, "end"),
    (CANDLES, {**SERIES, "start": "-5"}, "start"),
    (CANDLES, {**SERIES, "start": "9" * 5000}, "start"),
    (CANDLES, {**SERIES, "as_of": "now"}, "as_of"),
    (CANDLES, {**SERIES, "format": "exe"}, "format"),
    (CANDLES, {**SERIES, "gaps": "hide"}, "gaps"),
    (TRADES, {}, "exchange_id"),
    (TRADES, SERIES, "timeframe"),
    (TRADES, {**MARKET, "exchange_id": "../../etc"}, "exchange_id"),
    (TRADES, {**MARKET, "symbol": "../../passwd"}, "symbol"),
    (TRADES, {**MARKET, "symbol": "é" * 100}, "symbol"),
    (TRADES, {**MARKET, "start": "5", "end": "5"}, "end"),
    (TRADES, {**MARKET, "start": "9" * 5000}, "start"),
    (TRADES, {**MARKET, "format": "exe"}, "format"),
    (TICKERS, {"exchange_id": "../etc"}, "exchange_id"),
    (TICKERS, {"exchange": "simulated"}, "exchange"),
    (TICKERS, {"symbol": "\x00"}, "symbol"),
    (TICKERS, {"cursor": "\x00"}, "cursor"),
    (TICKERS, {"limit": "1001"}, "limit"),
]
PATHS = ("nonsense", "$ne", "..%2f..%2fetc", "%00", "0" * 24, "%ff", "a" * 5000)


@pytest.fixture(scope="module")
async def client(mongo_uri: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        fresh_database(mongo_uri) as database,
        serving(database, tmp_path_factory.mktemp("lake")) as client,
    ):
        await ConnectorRegistry(database).ensure("simulated", Limits(1000, 1000))
        await know_markets(database)
        yield client


@pytest.mark.parametrize(("path", "body", "field"), BODIES, ids=lambda value: ascii(value)[:80])
async def test_a_bad_body_is_refused_by_field(
    client: Client, path: str, body: Any, field: str
) -> None:
    answer = await client.post(path, body)
    assert answer.status == 422, answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert field in [error["field"] for error in answer.body["errors"]]
    assert all(error["reason"] and error["code"] for error in answer.body["errors"])
    assert {"type", "title", "status", "detail", "code"} <= set(answer.body)


@pytest.mark.parametrize(("path", "query", "field"), QUERIES, ids=lambda value: ascii(value)[:80])
async def test_a_bad_query_is_refused_by_field(
    client: Client, path: str, query: dict[str, str], field: str
) -> None:
    answer = await client.get(path, params=query)
    assert answer.status == 422, answer.body
    assert field in [error["field"] for error in answer.body["errors"]]


@pytest.mark.parametrize("identity", PATHS, ids=lambda value: value[:20])
async def test_ids_that_are_operators_or_paths_are_simply_not_found(
    client: Client, identity: str
) -> None:
    for place in (JOBS, CONNECTORS):
        url = URL(f"{place}/{identity}", encoded=True)
        for method in ("GET", "DELETE"):
            assert (await client(method, url)).status == 404  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"\x80abc", "application/json", 400),
        (b'{"exchange_id": "simulated"}', "application/octet-stream", 422),
        (b"[" * 100_000, "application/json", 400),
        (
            b'{"exchange_id": "simulated", "rate_limit": 1' + b"0" * 5000 + b"}",
            "application/json",
            400,
        ),
        (b'{"exchange_id": "simulated", "rate_limit": NaN}', "application/json", 422),
        (b"", "application/json", 422),
    ],
    ids=["broken", "not text", "not JSON", "deep", "digits", "NaN", "empty"],
)
async def test_a_body_that_is_not_json_is_refused(
    client: Client, content: bytes, kind: str, status: int
) -> None:
    headers = {"Content-Type": kind}
    answer = await client.post(CONNECTORS, data=content, headers=headers)
    assert answer.status == status, answer.body
    assert answer.code in ("malformed_request", "invalid_request")
    assert all(error["field"] and error["reason"] for error in answer.body["errors"])
    assert answer.body["errors"]


async def test_a_large_body_is_refused_announced_or_not(client: Client) -> None:
    large = json.dumps({"exchange_id": "simulated", "notes": "x" * 1_200_000}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(large), 65_536):
            yield large[start : start + 65_536]

    headers = {"Content-Type": "application/json"}
    for data in (io.BytesIO(large), pieces()):
        answer = await client.post(CONNECTORS, data=data, headers=headers)
        assert (answer.status, answer.code) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        (CONNECTORS, "GET, HEAD, POST"),
        (f"{CONNECTORS}/simulated", "DELETE, GET, HEAD, PATCH"),
        (f"{JOBS}/{'0' * 24}", "DELETE, GET, HEAD, PATCH, PUT"),
        (f"{JOBS}/{'0' * 24}/runs", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_says_which_are_right(client: Client, path: str, methods: str) -> None:
    answer = await client("TRACE", path)
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == methods


async def test_a_whole_number_may_be_written_with_a_point(client: Client) -> None:
    change = {"rate_limit": 500.0, "windows": [{"limit": 6000.0, "period_ms": 60_000.0}]}
    answer = await client("PATCH", f"{CONNECTORS}/simulated", change)
    assert (answer.status, answer.body["rate_limit"]) == (200, 500)
    job = {**BACKFILL, "since": 1_735_689_600_000.0, "priority": 10.0}
    answer = await client.post(JOBS, job)
    assert answer.status == 201
    assert (answer.body["cursor"]["since_ms"], answer.body["priority"]) == (1_735_689_600_000, 10)
