"""Codes that mean "stop", whatever status they come with and whether ccxt knows them or not."""

from __future__ import annotations

from typing import Any

import pytest

from collector.errors import BadRequest, ExchangeBlocked, ExchangeUnavailable
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, Desk, opened, says
from tests.support.dialects import DIALECTS

BYBIT = {"retMsg": "System level frequency protection", "result": {}, "retExtInfo": {}}
STOPS: dict[str, tuple[str, Any, int]] = {
    "bybit": ("bybit", {"retCode": 10429, **BYBIT, "time": 1735689661234}, 5_000),
    "bitfinex": ("bitfinex", ["error", 11010, "ratelimit: error"], 60_000),
}


async def asked(desk: Desk) -> None:
    symbol = DIALECTS[desk.exchange.id].symbol
    await desk.exchange.fetch_bars(symbol, MINUTE, FIRST_BAR_MS, 100)


@pytest.mark.parametrize("name", STOPS)
@pytest.mark.parametrize("status", [200, 429, 500])
async def test_a_stop_blocks_everyone(name: str, status: int) -> None:
    exchange_id, body, wait_ms = STOPS[name]
    async with opened(exchange_id) as desk:
        desk.venue.turns.append(says(status, body))
        with pytest.raises(ExchangeBlocked) as caught:
            await asked(desk)
        assert caught.value.retry_after_ms == wait_ms
        assert [type(answer.error) for answer in desk.permit.answers] == [ExchangeBlocked]


@pytest.mark.parametrize(
    ("exchange_id", "body", "error"),
    [
        # The code stands in a time and in a message, and means nothing there.
        ("bybit", {"retCode": 10016, **BYBIT, "time": 1671042912345}, ExchangeUnavailable),
        ("bybit", {"retCode": 10001, **BYBIT, "retMsg": "no 10429"}, BadRequest),
        ("bitfinex", ["error", 20060, "maintenance 11010"], ExchangeUnavailable),
    ],
)
async def test_the_digits_alone_are_no_stop(exchange_id: str, body: Any, error: type) -> None:
    async with opened(exchange_id) as desk:
        desk.venue.turns.append(says(500 if exchange_id == "bitfinex" else 200, body))
        with pytest.raises(error):
            await asked(desk)
