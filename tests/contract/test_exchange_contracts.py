"""Contracts, where a venue writes their bars in other columns than those of spot."""

from __future__ import annotations

from typing import Any

import pytest

from collector.clock import ManualClock
from collector.errors import ExchangeUnavailable
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, opened, says

SECONDS = FIRST_BAR_MS // 1000
PRICES = ("93576", "93610.9", "93537.5", "93600.1")
BITGET = {"code": "00000", "msg": "success", "requestTime": 1735689661234}
MEXC_COLUMNS = {
    "time": [SECONDS],
    "open": [93576.0],
    "high": [93610.9],
    "low": [93537.5],
    "close": [93600.1],
    "vol": [1234.0],
    "amount": [115500.5],
}


def bybit(volume: str, turnover: str) -> Any:
    result = {"list": [[str(FIRST_BAR_MS), *PRICES, volume, turnover]]}
    return {"retCode": 0, "retMsg": "OK", "result": result, "retExtInfo": {}, "time": 0}


ANSWERS: dict[str, tuple[str, Any, float, float | None]] = {
    "okx": (
        "BTC/USDT:USDT",
        {
            "code": "0",
            "msg": "",
            "data": [
                [str(FIRST_BAR_MS), *PRICES, "1234", "12.34", "115500.5", "1"],
            ],
        },
        12.34,
        115500.5,
    ),
    "gate": (
        "BTC/USDT:USDT",
        [
            {"t": SECONDS, "v": 1234, "c": "93600.1", "h": "93610.9", "l": "93537.5"}
            | {"o": "93576", "sum": "115500.5"}
        ],
        0.1234,
        115500.5,
    ),
    "bitget": (
        "BTC/USDT:USDT",
        {
            **BITGET,
            "data": [
                [str(FIRST_BAR_MS), *PRICES, "12.34", "115500.5"],
            ],
        },
        12.34,
        115500.5,
    ),
    "mexc": ("BTC/USDT:USDT", {"success": True, "code": 0, "data": MEXC_COLUMNS}, 0.1234, None),
    "binanceusdm": (
        "BTC/USDT:USDT",
        [[FIRST_BAR_MS, *PRICES, "12.34", FIRST_BAR_MS + 59_999, "115500.5", 9, "6", "5", "0"]],
        12.34,
        115500.5,
    ),
    "binancecoinm": (
        "BTC/USD:BTC",
        [[FIRST_BAR_MS, *PRICES, "1234", FIRST_BAR_MS + 59_999, "1.31", 9, "6", "5", "0"]],
        1.31,
        None,
    ),
    "bybit": ("BTC/USDT:USDT", bybit("12.34", "115500.5"), 12.34, 115500.5),
    "bybit, inverse": ("BTC/USD:BTC", bybit("1234", "0.0131"), 0.0131, 1234.0),
}
"""A symbol, an answer with one bar, its volume in base currency and its turnover in quote currency.
A contract of Gate's and of MEXC's is a ten-thousandth of a bitcoin, and they count contracts."""


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_contracts_volume_is_in_base_currency(name: str) -> None:
    symbol, body, volume, turnover = ANSWERS[name]
    async with opened(name.split(",")[0], clock=ManualClock(FIRST_BAR_MS)) as desk:
        desk.venue.turns.append(says(200, body))
        page = await desk.exchange.fetch_bars(symbol, MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == ((FIRST_BAR_MS, *map(float, PRICES), volume, turnover),)
        desk.assert_one_token_a_request()


TRADES: dict[str, tuple[str, Any, float]] = {
    "gate": (
        "BTC/USDT:USDT",
        [{"id": 1, "create_time": SECONDS, "contract": "BTC_USDT", "size": -50, "price": "93576"}],
        0.005,
    ),
    "okx": (
        "BTC/USDT:USDT",
        {
            "code": "0",
            "msg": "",
            "data": [
                {"instId": "BTC-USDT-SWAP", "side": "sell", "sz": "50", "px": "93576"}
                | {"tradeId": "1", "ts": str(FIRST_BAR_MS)}
            ],
        },
        0.5,
    ),
    "binancecoinm": (
        "BTC/USD:BTC",
        [{"a": 1, "p": "50000", "q": "5", "f": 1, "l": 1, "T": FIRST_BAR_MS, "m": True}],
        0.01,
    ),
    "binance": (
        "BTC/USDT",
        [{"a": 1, "p": "50000", "q": "5", "f": 1, "l": 1, "T": FIRST_BAR_MS, "m": True}],
        5.0,
    ),
}
"""A contract is 0.0001 BTC at Gate, 0.01 BTC at OKX and 100 USD at Binance."""


@pytest.mark.parametrize("exchange_id", TRADES)
async def test_a_trades_size_is_in_base_currency(exchange_id: str) -> None:
    symbol, body, amount = TRADES[exchange_id]
    async with opened(exchange_id, clock=ManualClock(FIRST_BAR_MS + 60_000)) as desk:
        desk.venue.turns.append(says(200, body))
        page = await desk.exchange.fetch_trades(symbol, FIRST_BAR_MS)
        assert [trade.amount for trade in page.trades] == [amount]


@pytest.mark.parametrize(
    "columns",
    [
        None,
        {},
        {name: values for name, values in MEXC_COLUMNS.items() if name != "time"},
        {**MEXC_COLUMNS, "low": []},
        {**MEXC_COLUMNS, "time": None},
    ],
)
async def test_columns_that_do_not_fit_are_no_page(columns: Any) -> None:
    async with opened("mexc", clock=ManualClock(FIRST_BAR_MS)) as desk:
        desk.venue.turns.append(says(200, {"success": True, "code": 0, "data": columns}))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars("BTC/USDT:USDT", MINUTE, FIRST_BAR_MS, 3)


async def test_empty_columns_are_an_empty_page() -> None:
    async with opened("mexc", clock=ManualClock(FIRST_BAR_MS)) as desk:
        empty: dict[str, list[float]] = {name: [] for name in MEXC_COLUMNS}
        desk.venue.turns.append(says(200, {"success": True, "code": 0, "data": empty}))
        page = await desk.exchange.fetch_bars("BTC/USDT:USDT", MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == ()
