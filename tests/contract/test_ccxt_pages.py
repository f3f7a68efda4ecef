"""Pages of bars: the same shape from venues that send them differently, and never a false one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from collector.clock import ManualClock
from collector.errors import BadRequest, ExchangeUnavailable, MarketsUnavailable
from collector.market.answer import Question
from collector.market.timeframe import Timeframe
from collector.pipeline.evidence import Known, weigh
from tests.support.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    breaks_off,
    opened,
    recording,
    says,
)

EXPECTED = (
    (FIRST_BAR_MS, 93576.0, 93610.93, 93537.5, 93610.93, 8.21827, 768978.0152254),
    (FIRST_BAR_MS + 60_000, 93610.93, 93652.0, 93606.2, 93652.0, 5.18453, 485428.2154748),
    (FIRST_BAR_MS + 120_000, 93651.99, 93653.51, 93570.5, 93600.01, 6.72044, 629151.7113057),
)


def bybit_page(rows: Any) -> dict[str, Any]:
    return {"retCode": 0, "retMsg": "OK", "result": {"list": rows}, "retExtInfo": {}, "time": 1}


@pytest.mark.parametrize("exchange_id", ["binance", "simulated", "bybit"])
async def test_a_page_is_oldest_first_with_turnover(exchange_id: str) -> None:
    async with opened(exchange_id) as desk:
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == EXPECTED
        assert page.question == Question(MINUTE, FIRST_BAR_MS, FIRST_BAR_MS + 180_000, 3)
        assert page.server_ms is not None


async def test_what_is_asked_reaches_binance() -> None:
    async with opened("binance") as desk:
        await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 5000)
        request = desk.venue.requests[0]
        assert request.path == "/api/v3/klines"
        assert dict(request.query) == {
            "symbol": "BTCUSDT",
            "interval": "1m",
            "limit": "1000",
            "startTime": str(FIRST_BAR_MS),
        }


async def test_what_is_asked_reaches_bybit() -> None:
    async with opened("bybit") as desk:
        await desk.exchange.fetch_bars("BTC/USDT:USDT", MINUTE, FIRST_BAR_MS, 1000)
        request = desk.venue.requests[0]
        assert request.path == "/v5/market/kline"
        assert dict(request.query) == {
            "symbol": "BTCUSDT",
            "category": "linear",
            "interval": "1",
            "limit": "1000",
            "start": str(FIRST_BAR_MS),
        }


async def test_bars_outside_of_what_was_asked_for_are_kept_and_are_no_part_of_it() -> None:
    """One before the question and one behind it: they show where its silences end."""
    async with opened("bybit") as desk:
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS + 60_000, 1)
        assert page.rows == EXPECTED
        assert page.full
        ended = replace(page, ended_ms=FIRST_BAR_MS + 600_000)
        verdict = weigh(Known(MINUTE, 1000), [ended])
        assert verdict.bars.ts.tolist() == [FIRST_BAR_MS + 60_000]


async def test_the_bar_that_runs_at_since_is_kept_as_it_came() -> None:
    """A moment within a bar: its rows are not the question's."""
    async with opened("binance") as desk:
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS + 1, 3)
        assert page.rows == EXPECTED
        ended = replace(page, ended_ms=FIRST_BAR_MS + 600_000)
        verdict = weigh(Known(MINUTE, 1000), [ended])
        assert verdict.bars.ts.tolist() == [FIRST_BAR_MS + 60_000, FIRST_BAR_MS + 120_000]


async def test_inverse_contracts_have_turnover_only_where_a_column_means_it() -> None:
    async with opened("binancecoinm") as desk:
        page = await desk.exchange.fetch_bars("BTC/USD:BTC", MINUTE, FIRST_BAR_MS, 1)
        assert page.rows[0][5:] == (1.31983214, None)
    async with opened("bybit") as desk:
        row = [str(FIRST_BAR_MS), "1", "1", "1", "1", "4177", "0.24469757"]
        desk.venue.turns.append(says(200, bybit_page([row])))
        page = await desk.exchange.fetch_bars("BTC/USD:BTC", MINUTE, FIRST_BAR_MS, 1)
        assert page.rows[0][5:] == (0.24469757, 4177.0)


@pytest.mark.parametrize(("exchange_id", "empty"), [("binance", []), ("bybit", bybit_page([]))])
async def test_a_well_formed_empty_page_is_a_page(exchange_id: str, empty: Any) -> None:
    async with opened(exchange_id) as desk:
        desk.venue.turns.append(says(200, empty))
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == ()


BROKEN = {
    "nothing": "",
    "text": "OK",
    "null": "null",
    "html": "<html><body>Maintenance</body></html>",
    "cut off": json.dumps(recording("binance", "klines"))[:200],
    "cut off before anything": "[[17356896",
    "an object": "{}",
    "an object with a message": '{"msg": "try later"}',
    "numbers": "[1, 2, 3]",
    "words": '["a", "b"]',
    "nulls": "[null, null]",
    "empty rows": "[[], []]",
    "rows without times": '[[null, "1", "1", "1", "1", "1", 0, "1"]]',
}
BROKEN_AT_BYBIT = {
    "no result": json.dumps({"retCode": 0, "retMsg": "OK", "result": {}, "retExtInfo": {}}),
    "a null list": json.dumps(bybit_page(None)),
    "an object for a list": json.dumps(bybit_page({})),
    "a list alone": "[]",
    "numbers in the list": json.dumps(bybit_page([1, 2])),
    "cut off": json.dumps(recording("bybit", "kline"))[:150],
    "html": BROKEN["html"],
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_answer_of_binance_is_no_page(name: str) -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(
            says(200, text=BROKEN[name], headers={"Content-Type": "application/json"})
        )
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        desk.assert_one_token_a_request()


@pytest.mark.parametrize("name", BROKEN_AT_BYBIT)
async def test_a_broken_answer_of_bybit_is_no_page(name: str) -> None:
    async with opened("bybit") as desk:
        desk.venue.turns.append(says(200, text=BROKEN_AT_BYBIT[name]))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)


async def test_a_body_that_breaks_off_is_no_page() -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(breaks_off)
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert desk.permit.answers[0].outcome == "2xx"


async def test_single_broken_values_pass_to_the_pipeline() -> None:
    rows = recording("binance", "klines")
    rows[0][2] = None
    rows[1][4] = "NaN"
    rows[2][0] = None
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, rows))
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert page.rows[0][2] is None
        assert page.rows[1][4] is not None
        assert math.isnan(page.rows[1][4])
        assert page.rows[2][0] is None, "a row without a time is not dropped"


async def test_duplicates_and_disorder_pass_to_the_pipeline_in_order() -> None:
    rows = recording("binance", "klines")
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, [rows[2], rows[0], rows[0]]))
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == (EXPECTED[0], EXPECTED[0], EXPECTED[2])


async def test_a_list_without_a_fixed_place_is_looked_for_in_the_raw_answer() -> None:
    """Kraken: `[]` from ccxt is believed only when the answer itself holds the list."""
    pairs = {
        "XXBTZUSD": {
            "altname": "XBTUSD",
            "wsname": "XBT/USD",
            "base": "XXBT",
            "quote": "ZUSD",
            "pair_decimals": 1,
            "lot_decimals": 8,
            "fees": [[0, 0.4]],
            "fees_maker": [[0, 0.25]],
            "ordermin": "0.00005",
            "tick_size": "0.1",
            "status": "online",
        }
    }
    assets = {
        "XXBT": {"altname": "XBT", "decimals": 10, "status": "enabled"},
        "ZUSD": {"altname": "USD", "decimals": 4, "status": "enabled"},
    }
    clock = ManualClock(FIRST_BAR_MS)
    async with opened("kraken", markets=False, clock=clock) as desk:
        desk.venue.turns.extend(
            [
                says(200, {"error": [], "result": assets}),
                says(200, {"error": [], "result": pairs}),
                says(200, {"error": [], "result": {"XXBTZUSD": [], "last": 1}}),
                says(200, {"error": []}),
                says(200, text="<html>"),
            ]
        )
        await desk.exchange.load_markets()
        page = await desk.exchange.fetch_bars("BTC/USD", MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == ()
        for _ in range(2):
            with pytest.raises(ExchangeUnavailable):
                await desk.exchange.fetch_bars("BTC/USD", MINUTE, FIRST_BAR_MS, 3)
        desk.assert_one_token_a_request()


async def test_a_timeframe_or_market_that_is_not_there_costs_no_request() -> None:
    async with opened("binance") as desk:
        with pytest.raises(BadRequest, match="did you mean BTC/USDT"):
            await desk.exchange.fetch_bars("BTC/USTD", MINUTE, FIRST_BAR_MS, 3)
        with pytest.raises(BadRequest, match="serves no 7m bars; it serves 1s, 1m"):
            await desk.exchange.fetch_bars("BTC/USDT", Timeframe.parse("7m"), FIRST_BAR_MS, 3)
        assert not desk.permit.granted


async def test_bars_are_never_asked_for_before_markets_are_known() -> None:
    async with opened("binance", markets=False) as desk:
        with pytest.raises(MarketsUnavailable):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert not desk.permit.granted


async def test_the_venues_clock() -> None:
    for exchange_id in ("binance", "bybit"):
        async with opened(exchange_id) as desk:
            assert await desk.exchange.server_ms() == 1735689661234
            desk.venue.turns.append(says(200, {"retCode": 0, "time": "soon", "serverTime": "soon"}))
            with pytest.raises(ExchangeUnavailable):
                await desk.exchange.server_ms()
