"""What ccxt picks out of an answer is an empty page only if it is rows or columns without bars."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.page import Learnt
from collector.exchanges.quirks import Quirks
from collector.market.timeframe import Timeframe
from tests.contract.any_exchange import NOW_MS, SPOT_MARKET, any_exchange
from tests.support.ccxt_venue import says

HOUR = Timeframe.parse("1h")
SINCE_MS = HOUR.floor(NOW_MS) - 50 * HOUR.ms
MARKET = {**SPOT_MARKET, "id": "1"}
"""A number is an id at every venue, and nado has no others."""
NO_CELLS: dict[str, list[float]] = {name: [] for name in ("t", "o", "h", "l", "c", "v")}
NO_TICKS: dict[str, list[float]] = {
    name: [] for name in ("ticks", "open", "high", "low", "close", "volume", "cost")
}

BROKEN: list[tuple[str, Any]] = [
    ("bithumb", {}),
    ("btcturk", {}),
    ("btcturk", ["error", 10020, "time: invalid"]),
    ("btcturk", [None, None]),
    ("btcturk", [["busy"]]),
    ("btcturk", [{"error": "busy"}]),
    ("btcturk", {"data": []}),
    ("btcturk", {"s": "ok"}),
    ("btcturk", {"s": "no_data", "t": [], "c": [1.5]}),
    ("mercado", {}),
    ("mercado", {"data": {}}),
    ("deribit", {"result": {}}),
    ("deribit", {"jsonrpc": "2.0", "result": {"ticks": []}}),
    ("coinbaseinternational", {"result": {}}),
    ("nado", {}),
    ("nado", -1.5),
    ("nado", 500.0),
    ("nado", "1.5"),
    ("nado", {"candlesticks": 1.5}),
    ("nado", {"candlesticks": [1.5]}),
    ("nado", {"error_code": 1.5, "candlesticks": []}),
]
EMPTY: list[tuple[str, Any]] = [
    ("bithumb", []),
    ("btcturk", {"s": "ok", **NO_CELLS}),
    ("btcturk", {"s": "no_data", **NO_CELLS}),
    ("btcturk", {"s": "no_data", "nextTime": 1}),
    ("mercado", NO_CELLS),
    ("deribit", {"jsonrpc": "2.0", "result": {**NO_TICKS, "status": "no_data"}}),
    ("deribit", {"jsonrpc": "2.0", "result": {"status": "no_data"}}),
    ("coinbaseinternational", {"result": NO_TICKS}),
    ("nado", {"candlesticks": []}),
]


@pytest.mark.parametrize(("exchange_id", "body"), BROKEN, ids=str)
async def test_what_is_no_page_is_refused(exchange_id: str, body: Any) -> None:
    async with any_exchange(exchange_id, MARKET) as desk:
        desk.venue.always = says(200, text=json.dumps(body))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars("BTC/USDT", HOUR, SINCE_MS, 10)
        assert len(desk.venue.requests) == 1
        assert [answer.health for answer in desk.permit.answers] == ["bad"]


@pytest.mark.parametrize(("exchange_id", "body"), EMPTY, ids=str)
async def test_a_page_without_bars_is_one(exchange_id: str, body: Any) -> None:
    async with any_exchange(exchange_id, MARKET) as desk:
        desk.venue.always = says(200, text=json.dumps(body))
        page = await desk.exchange.fetch_bars("BTC/USDT", HOUR, SINCE_MS, 10)
        assert len(page.rows) == 0
        assert [answer.health for answer in desk.permit.answers] == ["good"]


async def test_a_request_that_ccxt_cannot_build_is_an_error_of_the_exchange() -> None:
    """nado takes every market's id for a number: ccxt raises a bare decimal.InvalidOperation."""
    async with any_exchange("nado", {**SPOT_MARKET, "id": "BTC_USDT"}) as desk:
        with pytest.raises(ExchangeUnavailable, match="nado: InvalidOperation"):
            await desk.exchange.fetch_bars("BTC/USDT", HOUR, SINCE_MS, 10)
        assert not desk.venue.requests
        assert not desk.permit.granted


async def test_an_error_in_our_own_code_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Learnt, since_ms: int) -> int:
        raise KeyError(since_ms)

    monkeypatch.setattr(Learnt, "since", broken)
    async with any_exchange("nado", MARKET) as desk:
        with pytest.raises(KeyError):
            await desk.exchange.fetch_bars("BTC/USDT", HOUR, SINCE_MS, 10)


async def test_an_error_in_our_own_code_that_ccxt_calls_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ccxt builds the request, and the hook in it counts what the request weighs."""
    async with any_exchange("nado", MARKET) as desk:
        monkeypatch.setattr(Quirks, "weight_of_cost", lambda _self, cost: {}[cost])
        with pytest.raises(KeyError):
            await desk.exchange.fetch_bars("BTC/USDT", HOUR, SINCE_MS, 10)
