"""The last state of streams through REST and as server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.streams.live_board import LiveBoard
from collector.streams.publisher import (
    HeartbeatMessage,
    MarketStatusMessage,
    PriceSnapshot,
    SnapPrice,
)
from tests.support.local_api import emptied
from tests.support.server_events import listening, next_event

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from tests.support.local_api import Client

URL = "/api/v1/live"


@pytest.fixture
async def board(served_database: Database) -> LiveBoard:
    await emptied(served_database)
    return LiveBoard(served_database)


def snapshot(*symbols: str, exchange_id: str = "simulated", bid: float = 1.0) -> PriceSnapshot:
    prices = tuple(SnapPrice(each, bid, 3.0, 2.0, 10.0, 11.0) for each in symbols)
    return PriceSnapshot(exchange_id, 5, 11.0, prices)


async def publish_all(board: LiveBoard) -> None:
    await board.publish_prices(snapshot("BTC/USDT", "ETH/USDT"))
    await board.publish_prices(snapshot("BTC/USDT", exchange_id="binance"))
    await board.publish_heartbeat(HeartbeatMessage("simulated", 5, {"state": "STREAM"}))
    await board.publish_market_status(MarketStatusMessage("simulated", 5, {"state": "open"}))


async def test_a_late_comer_reads_the_last_state(server: Client, board: LiveBoard) -> None:
    await publish_all(board)
    body = (await server.get(URL, params={"exchange_id": "simulated"})).body
    assert [(each["kind"], each["symbol"]) for each in body["items"]] == [
        ("heartbeat", None),
        ("market_status", None),
        ("price", "BTC/USDT"),
        ("price", "ETH/USDT"),
    ]
    price = body["items"][2]
    assert price["payload"] == {
        "symbol": "BTC/USDT",
        "bid": 1.0,
        "ask": 3.0,
        "mid": 2.0,
        "tick_ts": 10.0,
        "snap_ts": 11.0,
    }
    assert (price["fence"], price["exchange_id"]) == (5, "simulated")
    assert price["seen_at"] > 0


async def test_states_are_filtered_and_come_by_the_page(server: Client, board: LiveBoard) -> None:
    await publish_all(board)
    found, cursor = [], None
    while True:
        params = {"kind": "price", "limit": "1"} | ({} if cursor is None else {"cursor": cursor})
        body = (await server.get(URL, params=params)).body
        found += [(each["exchange_id"], each["symbol"]) for each in body["items"]]
        cursor = body["next_cursor"]
        if cursor is None:
            break
    assert found == [
        ("binance", "BTC/USDT"),
        ("simulated", "BTC/USDT"),
        ("simulated", "ETH/USDT"),
    ]
    one = (await server.get(URL, params={"symbol": "ETH/USDT"})).body["items"]
    assert [each["symbol"] for each in one] == ["ETH/USDT"]
    assert (await server.get(URL, params={"kind": "bar"})).status == 422
    assert (await server.get(URL, params={"exchange_id": "nowhere"})).status == 422


async def test_each_kind_is_an_event_of_its_name(server: Client, board: LiveBoard) -> None:
    async with server.session.get("/api/v1/events") as response:
        await listening(response)
        await publish_all(board)
        seen: dict[str, Any] = {}
        while len(seen) < 3:
            name, data = await next_event(response)
            seen[name] = data
        assert set(seen) == {"price", "heartbeat", "market_status"}
        assert seen["heartbeat"]["payload"] == {"state": "STREAM"}
        assert seen["price"]["payload"]["bid"] == 1.0
        await board.publish_prices(snapshot("ETH/USDT", bid=1.5))
        while True:
            name, data = await next_event(response)
            if (name, data["symbol"], data["payload"]["bid"]) == ("price", "ETH/USDT", 1.5):
                return
