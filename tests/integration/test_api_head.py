"""HEAD on every path that has GET: the same status and headers, and no body."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from api.app import all_routes
from collector.store.store import Store
from tests.support.bars import BTC, bars, span
from tests.support.local_api import know_markets
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.local_api import Client

NEEDED = {
    "/api/v1/markets": {"exchange_id": "simulated"},
    "/api/v1/candles": {"exchange_id": "binance", "symbol": "BTC/USDT", "timeframe": "1m"},
    "/api/v1/trades": {"exchange_id": "binance", "symbol": "BTC/USDT"},
    "/api/v1/history/market-rate": {"network": "riemann", "base": "1:A", "quote": "1:B"},
    "/api/v1/history/volume": {"network": "riemann", "base": "1:A", "quote": "1:B"},
    "/api/v1/history/candles": {"network": "riemann", "base": "1:A", "quote": "1:B"},
}
GETS = sorted(route.path for route in all_routes() if route.method == "GET")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    page = bars({n: 100.0 + n for n in range(10)})
    Store(root).append_page(BTC, page, span(0, 10), fence=1, known_at=1_000)
    return root


@pytest.mark.parametrize("path", GETS)
async def test_every_get_has_a_head(client: Client, path: str) -> None:
    await know_markets(client.services.database)
    await client.post("/api/v1/connectors", {"exchange_id": "simulated"})
    job = (await client.get("/api/v1/jobs")).body["items"][0]["id"]
    url = path.replace("{exchange_id}", "simulated").replace("{job_id}", job)
    async with asyncio.timeout(30):
        async with client.session.head(url, params=NEEDED.get(path)) as head:
            content = await head.read()
        async with client.session.get(url, params=NEEDED.get(path)) as get:
            pass
    assert (head.status, content) == (get.status, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


async def test_a_head_of_events_leaves_no_listener(client: Client) -> None:
    async with client.session.head("/api/v1/events") as response:
        assert response.status == 200
    await until(lambda: not client.services.feed._listeners, "the listener has left")


async def test_head_is_among_the_methods_that_are_allowed(client: Client) -> None:
    refused = await client("DELETE", "/api/v1/connectors")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD, POST")
