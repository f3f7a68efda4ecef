"""An error is no empty page, with or without an empty list: at no exchange that ccxt knows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from collector.errors import CollectorError, ExchangeUnavailable
from collector.exchanges.ccxt.catalog import ccxt_class, ccxt_ids
from tests.contract.any_exchange import NOW_MS, SPOT_MARKET, SWAP_MARKET, any_exchange
from tests.support.ccxt_venue import MINUTE, opened, says

SINCE_MS = MINUTE.floor(NOW_MS) - 50 * MINUTE.ms
ERRORS: dict[str, Any] = {
    "a code, and an empty list for data": {"code": 99999, "data": []},
    "a code in words": {"code": "99999", "msg": "try later", "data": []},
    "success is false": {"success": False, "data": [], "result": []},
    "the result is null": {"rc": 0, "mc": "SUCCESS", "ma": [], "result": None},
    "data is null": {"code": 0, "data": None, "list": []},
    "an error in words": {"error": "internal", "data": [], "result": [], "candles": []},
    "a list of errors": {"errors": ["busy"], "data": [], "result": [], "candles": []},
    "the status is error": {"status": "error", "data": [], "result": [], "ticks": []},
    "an empty object": {},
    "an empty object for a result": {"result": {}},
    "an empty object for data": {"data": {}},
    "an error as a list": ["error", 10020, "time: invalid"],
    "a list of nulls": [None, None],
    "a number": -1.5,
    "trading view's error": {"s": "error", "t": [], "o": [], "h": [], "l": [], "c": [], "v": []},
}


def serving_bars() -> list[str]:
    """Exchanges whose bars ccxt fetches, by the minute."""
    with_bars = []
    for exchange_id in sorted({*ccxt_ids(), "simulated"}):
        described = ccxt_class(exchange_id)()
        if described.has.get("fetchOHLCV") is True and "1m" in (described.timeframes or {}):
            with_bars.append(exchange_id)
    return with_bars


async def believed(exchange_id: str, market: dict[str, Any]) -> list[str] | None:
    """The errors that an exchange's adapter takes for an empty page.

    None when ccxt asks nothing of a market that is made up.
    """
    found = []
    async with any_exchange(exchange_id, market) as desk:
        for name, body in ERRORS.items():
            desk.venue.always = says(200, body)
            with suppress(CollectorError):
                await desk.exchange.fetch_bars(market["symbol"], MINUTE, SINCE_MS, 10)
                found.append(f"{exchange_id}: {name}")
            desk.assert_no_request_without_a_token()
        return found if desk.venue.requests else None


@pytest.mark.parametrize("market", [SPOT_MARKET, SWAP_MARKET], ids=["spot", "swap"])
async def test_no_exchange_takes_an_error_for_an_empty_page(market: dict[str, Any]) -> None:
    answers = [await believed(name, market) for name in serving_bars()]
    asked = [each for each in answers if each is not None]
    assert len(asked) > 70
    assert [wrong for each in asked for wrong in each] == []


@pytest.mark.parametrize(
    ("exchange_id", "body"),
    [
        ("okx", {"code": "0", "msg": "", "data": []}),
        ("bitget", {"code": "00000", "msg": "success", "requestTime": 1, "data": []}),
        ("kucoin", {"code": "200000", "data": []}),
        ("htx", {"ch": "x", "status": "ok", "ts": 1, "data": []}),
        ("bybit", {"retCode": 0, "retMsg": "OK", "result": {"list": []}, "time": 1}),
        ("coinbase", {"candles": []}),
        ("bitstamp", {"data": {"pair": "BTC/USD", "ohlc": []}}),
        ("gate", []),
        ("mexc", []),
        ("bitfinex", []),
    ],
)
async def test_an_empty_page_as_the_venue_documents_it_is_one(exchange_id: str, body: Any) -> None:
    async with any_exchange(exchange_id) as desk:
        desk.venue.always = says(200, body)
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, SINCE_MS, 10)
        assert page.rows == ()
        assert [answer.health for answer in desk.permit.answers] == ["good"]


JUDGED_BROKEN = [
    ("kraken", {}),
    ("bitfinex", ["error", 10020, "time: invalid"]),
    ("upbit", {}),
    ("bitvavo", {}),
    ("deribit", {}),
    ("hyperliquid", {}),
]


@pytest.mark.parametrize(("exchange_id", "body"), JUDGED_BROKEN)
async def test_the_permit_hears_once_and_after_the_judgement(exchange_id: str, body: Any) -> None:
    async with any_exchange(exchange_id) as desk:
        desk.venue.always = says(200, body)
        with pytest.raises(CollectorError):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, SINCE_MS, 10)
        assert len(desk.permit.answers) == len(desk.permit.granted) == 1
        (answer,) = desk.permit.answers
        assert answer.health != "good"
        assert answer.error is not None


async def test_trades_and_tickers_are_judged_before_the_permit_hears() -> None:
    async with opened("bybit") as desk:
        desk.venue.always = says(200, {"retCode": 0, "retMsg": "OK", "result": {}, "time": 1})
        for ask in (
            lambda: desk.exchange.fetch_trades("BTC/USDT", SINCE_MS),
            lambda: desk.exchange.fetch_tickers(),
        ):
            with pytest.raises(ExchangeUnavailable):
                await ask()
        assert [answer.health for answer in desk.permit.answers] == ["bad", "bad"]
