"""Refused rows through REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from api.roles import guarded_routes
from api.routes import ROUTERS
from collector.keys import Role
from collector.market.answer import Rejected
from collector.market.series import Series
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.local_api import Client

URL = "/api/v1/quarantine"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three refused minutes of BTC, one of ETH, one hour of BTC on bybit."""
    root = tmp_path_factory.mktemp("lake")
    store = Store(root)
    for series, slots in (
        (BTC, (1, 2, 3)),
        (ETH, (4,)),
        (Series.of("bybit", "BTC/USDT", "1h"), (60,)),
    ):
        rows = [Rejected("ohlc", at(slot), (at(slot), 2.0, 1.0)) for slot in slots]
        store.quarantine(series, rows, fence=3, known_at=7)
    return root


async def test_rows_come_in_pages_with_what_was_sent(client: Client) -> None:
    found, cursor = [], None
    while True:
        params = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        body = (await client.get(URL, params=params)).body
        found += body["items"]
        cursor = body["next_cursor"]
        if cursor is None:
            break
    assert [(item["symbol"], item["ts"]) for item in found] == [
        ("BTC/USDT", at(1)),
        ("BTC/USDT", at(2)),
        ("BTC/USDT", at(3)),
        ("ETH/USDT", at(4)),
        ("BTC/USDT", at(60)),
    ]
    assert found[0]["row"] == [at(1), 2.0, 1.0]
    assert (found[0]["reason"], found[0]["code"]) == ("ohlc", "E_SCHEMA")


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({"exchange_id": "binance"}, 4),
        ({"exchange_id": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}, 3),
        ({"symbol": "BTC/USDT"}, 4),
        ({"timeframe": "H1"}, 1),
        ({"symbol": "../../etc"}, 0),
        ({"symbol": "NO/SUCH"}, 0),
    ],
)
async def test_rows_are_picked_by_filters(
    client: Client, params: dict[str, str], count: int
) -> None:
    assert len((await client.get(URL, params=params)).body["items"]) == count


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"exchange_id": "binanse"}, "unknown_exchange"),
        ({"timeframe": "1x"}, "unknown_timeframe"),
        ({"cursor": "nonsense"}, "bad_cursor"),
        ({"limit": "0"}, "invalid_request"),
        ({"symbols": "BTC/USDT"}, "invalid_request"),
    ],
)
async def test_what_cannot_be_is_refused(client: Client, params: dict[str, str], code: str) -> None:
    answer = await client.get(URL, params=params)
    assert answer.status == 422
    assert code in {answer.code, *(error["code"] for error in answer.body["errors"])}


def test_a_viewer_may_look() -> None:
    roles = {route.path: route.role for route in guarded_routes(ROUTERS)}
    assert roles[URL] is Role.VIEWER
