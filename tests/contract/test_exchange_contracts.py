"""Contracts, where a venue writes their bars in other columns than those of spot."""

from __future__ import annotations

from typing import Any

import pytest

from collector.clock import ManualClock
from collector.errors import ExchangeUnavailable
from tests.contract.ccxt_venue import FIRST_BAR_MS, MINUTE, opened, says

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
        1234.0,
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
    "mexc": ("BTC/USDT:USDT", {"success": True, "code": 0, "data": MEXC_COLUMNS}, 1234.0, None),
}


@pytest.mark.parametrize("exchange_id", ANSWERS)
async def test_a_contracts_bar_is_read_from_its_own_columns(exchange_id: str) -> None:
    symbol, body, volume, turnover = ANSWERS[exchange_id]
    async with opened(exchange_id, clock=ManualClock(FIRST_BAR_MS)) as desk:
        desk.venue.turns.append(says(200, body))
        page = await desk.exchange.fetch_bars(symbol, MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == ((FIRST_BAR_MS, *map(float, PRICES), volume, turnover),)
        desk.assert_one_token_a_request()


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
