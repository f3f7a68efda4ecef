"""Trades and tickers through ccxt: what is requested, and what an answer covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import BadRequest, ExchangeUnavailable
from tests.support.ccxt_venue import FIRST_BAR_MS, opened, says

if TYPE_CHECKING:
    from aiohttp import web

HOUR = 3_600_000
PAGE = 1000


def kraken(*trades: Any) -> dict[str, Any]:
    return {"error": [], "result": {"XXBTZUSD": list(trades), "last": "1735689600000000000"}}


def kraken_trade(number: int, ts: int) -> list[Any]:
    return ["93576.1", "0.25", ts / 1000, "s", "l", "", number]


def bybit(*trades: Any) -> dict[str, Any]:
    return {"retCode": 0, "retMsg": "OK", "result": {"category": "linear", "list": list(trades)}}


def bybit_trade(number: int, ts: int) -> dict[str, Any]:
    return {
        "execId": f"exec-{number}",
        "symbol": "BTCUSDT",
        "price": "93576.1",
        "size": "0.25",
        "side": "Sell",
        "time": str(ts),
    }


async def test_what_is_asked_reaches_binance_and_weighs_what_it_counts() -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, []))
        page = await desk.exchange.fetch_trades("BTC/USDT", FIRST_BAR_MS)
        (request,) = desk.venue.requests
        assert request.path == "/api/v3/aggTrades"
        assert dict(request.query) == {
            "symbol": "BTCUSDT",
            "startTime": str(FIRST_BAR_MS),
            "limit": "1000",
        }
        assert [call.weight for call in desk.permit.granted] == [4]
        assert (page.trades, page.is_latest) == ((), True)
        desk.assert_one_token_a_request()


async def test_a_full_answer_of_kraken_leads_on_from_its_last_trade() -> None:
    async with opened("kraken") as desk:
        # Nothing says how exact the venue is: the first of these lies before the moment asked for.
        since = FIRST_BAR_MS + 500
        told = [kraken_trade(n, FIRST_BAR_MS + n) for n in range(499, 499 + PAGE)]
        desk.venue.turns.append(says(200, kraken(*told)))
        page = await desk.exchange.fetch_trades("BTC/USD", since)
        assert desk.venue.requests[0].query["since"] == str(since * 1_000_000 - 1)
        assert len(page.trades) == PAGE - 1
        assert (page.from_ms, page.to_ms) == (since, page.trades[-1].ts)
        first = page.trades[0]
        assert (first.id, first.price, first.amount, first.side) == ("500", 93576.1, 0.25, "sell")


async def test_a_second_with_more_trades_than_a_page_is_read_to_its_end() -> None:
    tape = [kraken_trade(n, FIRST_BAR_MS + n // 4) for n in range(2_500)]

    async def turn(request: web.Request) -> web.StreamResponse:
        text = request.query["since"]
        # Kraken takes seconds and nanoseconds alike, and gives what came after.
        since_ns = int(text) * (10**9 if len(text) < 12 else 1)
        after = [each for each in tape if round(each[2] * 1000) * 10**6 > since_ns]
        return await says(200, kraken(*after[:PAGE]))(request)

    async with opened("kraken") as desk:
        desk.venue.always = turn
        since, found = FIRST_BAR_MS, set[str]()
        for _ in range(4):
            page = await desk.exchange.fetch_trades("BTC/USD", since)
            found |= {trade.id for trade in page.trades}
            since = page.to_ms
        assert found == {str(number) for number in range(2_500)}
        assert page.is_latest


async def test_a_short_answer_of_kraken_reaches_the_present() -> None:
    async with opened("kraken") as desk:
        desk.venue.turns += [says(200, kraken(kraken_trade(1, FIRST_BAR_MS))), says(200, kraken())]
        for count in (1, 0):
            page = await desk.exchange.fetch_trades("BTC/USD", FIRST_BAR_MS)
            assert len(page.trades) == count
            assert page.is_latest
            assert page.to_ms > FIRST_BAR_MS


async def test_bitfinex_is_asked_for_the_oldest_first_and_counts_a_full_answer() -> None:
    async with opened("bitfinex") as desk:
        told = [[n, FIRST_BAR_MS + n // 2, -0.25, 93576.1] for n in range(10_000)]
        desk.venue.turns += [says(200, told), says(200, told[:3]), says(200, [])]
        full = await desk.exchange.fetch_trades("BTC/USD", FIRST_BAR_MS)
        (request,) = desk.venue.requests
        assert request.path == "/v2/trades/tBTCUSD/hist"
        assert dict(request.query) == {"start": str(FIRST_BAR_MS), "sort": "1", "limit": "10000"}
        assert [call.weight for call in desk.permit.granted] == [6]
        assert (full.to_ms, full.is_latest) == (FIRST_BAR_MS + 4_999, False)
        first = full.trades[0]
        assert (first.id, first.price, first.amount, first.side) == ("0", 93576.1, 0.25, "sell")
        for count in (3, 0):
            page = await desk.exchange.fetch_trades("BTC/USD", FIRST_BAR_MS)
            assert (len(page.trades), page.is_latest) == (count, True)


@pytest.mark.parametrize(
    "body",
    [
        {},
        ["error", 20060, "maintenance"],
        [[1, FIRST_BAR_MS, None, 93576.1]],
        [[1, FIRST_BAR_MS, 0.25]],
        ["nonsense"],
    ],
)
async def test_a_broken_answer_of_bitfinex_is_no_page(body: Any) -> None:
    async with opened("bitfinex") as desk:
        desk.venue.turns.append(says(200, body))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_trades("BTC/USD", FIRST_BAR_MS)
        desk.assert_one_token_a_request()


async def test_another_exchange_is_asked_for_its_newest_trades() -> None:
    async with opened("bybit") as desk:
        later = FIRST_BAR_MS + HOUR
        told = [bybit_trade(2, later + 5), bybit_trade(1, later)]
        desk.venue.turns.append(says(200, bybit(*told)))
        page = await desk.exchange.fetch_trades("BTC/USDT:USDT", FIRST_BAR_MS)
        assert "limit" not in desk.venue.requests[0].query
        assert [trade.id for trade in page.trades] == ["exec-1", "exec-2"]
        assert (page.from_ms, page.is_latest) == (later, True)


@pytest.mark.parametrize(
    "body",
    [
        {"error": [], "result": {"OTHER": [kraken_trade(1, FIRST_BAR_MS)], "last": "1"}},
        {"error": [], "result": {}},
        kraken([None, "0.25", FIRST_BAR_MS / 1000, "s", "l", "", 1]),
        kraken("nonsense"),
    ],
)
async def test_a_broken_answer_is_no_page(body: Any) -> None:
    async with opened("kraken") as desk:
        desk.venue.turns.append(says(200, body))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_trades("BTC/USD", FIRST_BAR_MS)
        desk.assert_one_token_a_request()


async def test_an_unknown_market_is_refused_before_it_is_asked_for() -> None:
    async with opened("kraken") as desk:
        with pytest.raises(BadRequest, match="has no market"):
            await desk.exchange.fetch_trades("NO/PE", FIRST_BAR_MS)
        assert not desk.venue.requests


async def test_tickers_of_markets_that_are_not_known_are_left_out() -> None:
    async with opened("binance") as desk:
        told = {"lastPrice": "3.5", "bidPrice": "3", "askPrice": "4", "volume": "10"}
        named = [{"symbol": name, "closeTime": FIRST_BAR_MS, **told} for name in ("BTCUSDT", "NEW")]
        desk.venue.turns += [says(200, named), says(200, named[1:]), says(200, {})]
        (ticker,) = await desk.exchange.fetch_tickers()
        assert (ticker.symbol, ticker.last, ticker.bid, ticker.ask) == ("BTC/USDT", 3.5, 3.0, 4.0)
        assert (ticker.volume, ticker.ts) == (10.0, FIRST_BAR_MS)
        assert [call.weight for call in desk.permit.granted] == [80]
        for _ in range(2):
            with pytest.raises(ExchangeUnavailable):
                await desk.exchange.fetch_tickers()
