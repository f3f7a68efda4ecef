"""What one asks before adding a series: exchanges, markets, and what it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.durations import DAY_MS
from collector.exchanges.port import Market, Markets
from collector.markets.book import MarketBook
from tests.support.local_api import know_markets, serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

ESTIMATE = "/api/v1/streams/estimate"
SEARCH = "/api/v1/markets/search"
WANTED: dict[str, Any] = {
    "exchange_id": "simulated",
    "symbols": ["BTC/USDT"],
    "timeframes": ["1m"],
}


async def test_requests_and_time_follow_from_the_tightest_window(
    database: Database, tmp_path: Path
) -> None:
    await know_markets(database)
    weight = Window("weight", 120, 60_000)
    await ConnectorRegistry(database).ensure("simulated", Limits(1_000, 1_000, windows=(weight,)))
    since = await database.now_ms() - 10 * DAY_MS
    async with serving(database, tmp_path) as client:
        body = (await client.post(ESTIMATE, {**WANTED, "since": since})).body
        assert abs(body["bars"] - 14_400) <= 1
        assert body["requests"] == 15, "a thousand bars each"
        # A page weighs 2, so 60 fit into a minute.
        assert body["seconds"] == pytest.approx(15)
        assert body["requests_per_day"] == 1_440
        assert body["share_per_day"] == pytest.approx(1_440 / (60 * 1_440))
        assert (body["series"], body["existing"], body["unknown"]) == (1, 0, 0)
        assert body["has_connector"]
        two = {**WANTED, "since": since, "symbols": ["BTC/USDT", "ETH/USDT"]}
        assert (await client.post(ESTIMATE, two)).body["requests"] == 30
        assert (await client.get("/api/v1/jobs")).body["items"] == [], "nothing was made"


async def test_what_exists_costs_nothing_again(database: Database, tmp_path: Path) -> None:
    await know_markets(database)
    await ConnectorRegistry(database).ensure("simulated", Limits(1_000, 1_000))
    now_ms = await database.now_ms()
    async with serving(database, tmp_path) as client:
        made = await client.post("/api/v1/streams", {**WANTED, "since": now_ms - 5 * DAY_MS})
        assert made.status == 201
        same = (await client.post(ESTIMATE, {**WANTED, "since": now_ms - 5 * DAY_MS})).body
        assert (same["existing"], same["requests"], same["requests_per_day"]) == (1, 0, 0)
        assert same["seconds_ahead"] > 0
        more = (await client.post(ESTIMATE, {**WANTED, "since": now_ms - 7 * DAY_MS})).body
        assert abs(more["bars"] - 2 * 1_440) <= 1, "what lies before"


async def test_an_unknown_beginning_is_said_and_no_history_costs_nothing(
    database: Database, tmp_path: Path
) -> None:
    await know_markets(database)
    async with serving(database, tmp_path) as client:
        body = (await client.post(ESTIMATE, WANTED)).body
        assert (body["unknown"], body["requests"]) == (1, 0)
        assert not body["has_connector"]
        only_new = (await client.post(ESTIMATE, {**WANTED, "backfill": False})).body
        assert (only_new["unknown"], only_new["requests"]) == (0, 0)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"exchange_id": "nosuch"}, "unknown_exchange"),
        ({"symbols": ["XXX/YYY"]}, "unknown_symbol"),
        ({"timeframes": ["7m"]}, "unknown_timeframe"),
        ({"since": "2999-01-01"}, "in_the_future"),
    ],
)
async def test_names_are_checked_first(
    database: Database, tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    await know_markets(database)
    async with serving(database, tmp_path) as client:
        answer = await client.post(ESTIMATE, {**WANTED, **change})
    assert (answer.status, answer.code) == (422, code)


async def test_markets_are_found_by_letters_the_likeliest_first(
    database: Database, tmp_path: Path
) -> None:
    await know_markets(database)
    others = ("BTCST/USDT", "USDT/BTC", "BTC/EUR", "WBTC/BTC")
    pairs = [symbol.split("/") for symbol in others]
    markets = [Market(f"{base}/{quote}", base + quote, base, quote) for base, quote in pairs]
    await MarketBook(database).save(Markets("binance", tuple(markets), ("1m",)))
    left = {"exchange_id": "binance", "symbol": "BTC/EUR"}
    await database.markets.update_one(left, {"$set": {"active": False}})

    async with serving(database, tmp_path) as client:

        async def found(**asked: str) -> list[str]:
            body = (await client.get(SEARCH, params=asked)).body
            return [item["symbol"] for item in body["items"]]

        everywhere = await found(search="btc")
        assert everywhere == ["BTC/USDT", "BTCST/USDT", "USDT/BTC", "WBTC/BTC", "BTC/EUR"]
        assert await found(search="btcusdt") == ["BTC/USDT"]
        assert await found(search="btc usdt", exchange_id="binance") == ["BTCST/USDT", "USDT/BTC"]
        assert await found(search="btc", limit="1") == ["BTC/USDT"]
        assert await found(search=".*") == []
        assert len(await found()) == 7


async def test_every_exchange_is_listed_and_connected_ones_are_marked(
    database: Database, tmp_path: Path
) -> None:
    await ConnectorRegistry(database).ensure("kraken", Limits(1, 1_000))
    async with serving(database, tmp_path) as client:
        items = (await client.get("/api/v1/exchanges")).body["items"]
    names = [item["exchange_id"] for item in items]
    assert names == sorted(names)
    assert {"binance", "simulated", "fxcm", "kraken"} < set(names)
    assert [item["exchange_id"] for item in items if item["connected"]] == ["kraken"]
