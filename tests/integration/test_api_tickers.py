"""Tickers through REST: by the page, by exchange, by symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.exchanges.port import Ticker
from collector.markets.tickers import TickerBoard

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.local_api import Client

URL = "/api/v1/tickers"
TOLD = {
    "binance": ("BTC/USDT", "ETH/USDT", "SOL/USDT"),
    "binanceusdm": ("BTC/USDT", "BTC/USDT:USDT"),
    "bybit": ("BTC/USDT",),
}
ALL = [("binanceusdm", each) for each in TOLD["binanceusdm"]]
ALL += [(exchange_id, each) for exchange_id in ("binance", "bybit") for each in TOLD[exchange_id]]
"""In the order of lists: `_` and letters go before what ends a name."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module", autouse=True)
async def _told(client: Client) -> None:
    board = TickerBoard(client.services.database)
    for exchange_id, symbols in TOLD.items():
        await board.save(
            exchange_id, [Ticker(symbol, 2.0, 1.0, 3.0, None, ts=5_000) for symbol in symbols]
        )


async def listed(client: Client, **asked: str) -> list[tuple[str, str]]:
    """Every page of a list, one after the other."""
    found, cursor = [], None
    while True:
        params = {**asked} | ({} if cursor is None else {"cursor": cursor})
        body = (await client.get(URL, params=params)).body
        found += [(item["exchange_id"], item["symbol"]) for item in body["items"]]
        cursor = body["next_cursor"]
        if cursor is None:
            return found


async def test_a_ticker_is_the_document_of_the_board(client: Client) -> None:
    body = (await client.get(URL, params={"exchange_id": "binance", "symbol": "ETH/USDT"})).body
    assert body["next_cursor"] is None
    [item] = body["items"]
    assert item.pop("seen_at") > 5_000
    assert item == {
        "exchange_id": "binance",
        "symbol": "ETH/USDT",
        "last": 2.0,
        "bid": 1.0,
        "ask": 3.0,
        "volume": None,
        "ts": 5_000,
    }


@pytest.mark.parametrize("limit", ["1", "2", "1000"])
async def test_lists_come_in_pages_and_in_order(client: Client, limit: str) -> None:
    assert await listed(client, limit=limit) == ALL
    for exchange_id, symbols in TOLD.items():
        found = await listed(client, exchange_id=exchange_id, limit=limit)
        assert found == [(exchange_id, symbol) for symbol in symbols]
    found = await listed(client, symbol="BTC/USDT", limit=limit)
    assert found == [each for each in ALL if each[1] == "BTC/USDT"]


async def test_a_cursor_never_leads_out_of_what_was_asked(client: Client) -> None:
    asked = {"exchange_id": "binance"}
    assert len(await listed(client, **asked, cursor="a")) == 3
    assert await listed(client, **asked, cursor="binance|ETH/USDT") == [("binance", "SOL/USDT")]
    assert await listed(client, **asked, cursor="bybit|BTC/USDT") == []
    assert await listed(client, **asked, symbol="BTC/USDT", cursor="binance|BTC/USDT") == []


async def test_what_nobody_told_is_empty_and_an_unknown_exchange_is_refused(
    client: Client,
) -> None:
    assert await listed(client, exchange_id="kraken") == []
    assert await listed(client, exchange_id="binance", symbol="$where") == []
    refused = await client.get(URL, params={"exchange_id": "binanse"})
    assert (refused.status, refused.code) == (422, "unknown_exchange")
    assert "binance" in refused.body["errors"][0]["near"]


async def test_no_list_looks_at_more_than_it_answers(client: Client) -> None:
    """Keys that MongoDB looked at, by its own profiler."""
    raw = client.services.database.raw
    await raw.command("profile", 2)
    try:
        for asked in ({"exchange_id": "bybit"}, {"symbol": "SOL/USDT"}, {"limit": "1"}):
            await client.get(URL, params=asked)
    finally:
        await raw.command("profile", 0)
    looks = await raw["system.profile"].find({"ns": f"{raw.name}.tickers"}).to_list()
    await raw.drop_collection("system.profile")
    assert len(looks) == 3
    assert all(look["docsExamined"] <= look["nreturned"] + 1 for look in looks), looks
    assert not any("COLLSCAN" in look["planSummary"] for look in looks)
