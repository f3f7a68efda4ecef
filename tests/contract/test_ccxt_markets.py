"""Markets: asked for sparingly, kept in a database, restored without a request."""

from __future__ import annotations

import json

import bson
import orjson
import pytest

from collector.errors import ExchangeUnavailable, MarketsUnavailable
from collector.exchanges.port import Markets
from collector.markets.documents import markets_from_documents, markets_to_documents
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, opened, recording, says

SYMBOLS = {
    "binance": {"BTC/USDT", "ETH/BTC", "LUNA/USDT"},
    "binanceusdm": {"BTC/USDT:USDT"},
    "binancecoinm": {"BTC/USD:BTC"},
    "bybit": {"BTC/USDT", "BTC/USDT:USDT", "BTC/USD:BTC"},
}
PATHS = {
    "binance": ["/api/v3/exchangeInfo"],
    "binanceusdm": ["/fapi/v1/exchangeInfo"],
    "binancecoinm": ["/dapi/v1/exchangeInfo"],
    "bybit": ["/v5/market/instruments-info"] * 5,
}


@pytest.mark.parametrize("exchange_id", SYMBOLS)
async def test_only_what_is_needed_is_asked_for(exchange_id: str) -> None:
    async with opened(exchange_id, markets=False) as desk:
        markets = await desk.exchange.load_markets()
        assert {market.symbol for market in markets.markets} == SYMBOLS[exchange_id]
        assert [request.path for request in desk.venue.requests] == PATHS[exchange_id]
        desk.assert_one_token_a_request()


async def test_what_a_market_says() -> None:
    async with opened("binance", markets=False) as desk:
        markets = await desk.exchange.load_markets()
        by_symbol = {market.symbol: market for market in markets.markets}
        btc, luna = by_symbol["BTC/USDT"], by_symbol["LUNA/USDT"]
        assert (btc.venue_id, btc.base, btc.quote, btc.kind) == ("BTCUSDT", "BTC", "USDT", "spot")
        assert (btc.active, luna.active) == (True, False)
        assert btc.listed_ms is None
        assert markets.timeframes[:2] == ("1s", "1m")
        assert "1M" in markets.timeframes
    async with opened("bybit", markets=False) as desk:
        swap = (await desk.exchange.load_markets()).markets[-1]
        assert (swap.symbol, swap.kind, swap.listed_ms) == ("BTC/USDT:USDT", "swap", 1584230400000)


@pytest.mark.parametrize("exchange_id", SYMBOLS)
@pytest.mark.parametrize("through", ["bson", "json"])
async def test_markets_from_a_database_need_no_request(exchange_id: str, through: str) -> None:
    async with opened(exchange_id, markets=False) as desk:
        loaded = await desk.exchange.load_markets()
        documents = markets_to_documents(loaded)
        stored = [
            bson.decode(bson.encode({**document, "_id": 1, "updated_at": 2}))
            if through == "bson"
            else orjson.loads(orjson.dumps(document))
            for document in documents
        ]
    restored = markets_from_documents(exchange_id, stored)
    assert restored == loaded
    assert [market.raw for market in restored.markets] == [market.raw for market in loaded.markets]

    async with opened(exchange_id, markets=False) as desk:
        desk.exchange.restore_markets(restored)
        for market in restored.markets:
            desk.venue.requests.clear()
            page = await desk.exchange.fetch_bars(market.symbol, MINUTE, FIRST_BAR_MS, 3)
            assert page.rows
            assert [request.path.rsplit("/", 1)[-1] for request in desk.venue.requests] == [
                "kline" if exchange_id == "bybit" else "klines"
            ]


@pytest.mark.parametrize(
    "text",
    ["", "<html>", "[]", "{}", '{"symbols": []}', '{"symbols": {}}', '{"symbols": [{"symbol": "BT'],
)
async def test_no_markets_never_replace_known_ones(text: str) -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, text=text))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.load_markets()
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert len(page.rows) == 3


@pytest.mark.parametrize("broken", range(5))
async def test_one_broken_answer_of_several_is_not_a_shorter_list(broken: int) -> None:
    async with opened("bybit", markets=False) as desk:
        bare = says(200, {"retCode": 0, "retMsg": "OK", "result": {}, "time": 1})

        async def replay(request):  # type: ignore[no-untyped-def]
            turn = desk.venue.requests.index(request)
            return await (bare if turn == broken else says(200, desk.venue.recorded(request)))(
                request
            )

        desk.venue.always = replay
        with pytest.raises(ExchangeUnavailable, match="without its list"):
            await desk.exchange.load_markets()


async def test_a_market_that_cannot_be_read_is_an_answer_that_cannot_be_read() -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, {"symbols": [{"symbol": "BTCUSDT"}, 7]}))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.load_markets()


async def test_a_market_that_cannot_be_stored_does_not_hide_the_others() -> None:
    listed = recording("binance", "exchangeInfo")
    like = listed["symbols"][0]
    long = {**like, "symbol": "A" * 2**20, "baseAsset": "A" * 2**20}
    async with opened("binance", markets=False) as desk:
        desk.venue.turns.append(says(200, {**listed, "symbols": [*listed["symbols"], long]}))
        markets = await desk.exchange.load_markets()
        assert {market.symbol for market in markets.markets} == SYMBOLS["binance"]
        desk.venue.turns.append(says(200, {**listed, "symbols": [long]}))
        with pytest.raises(ExchangeUnavailable, match="no market that can be stored"):
            await desk.exchange.load_markets()


async def test_nothing_cannot_be_restored() -> None:
    async with opened("binance", markets=False) as desk:
        with pytest.raises(MarketsUnavailable):
            desk.exchange.restore_markets(Markets("binance", (), ()))


async def test_what_is_kept_of_a_market_is_small() -> None:
    async with opened("binance", markets=False) as desk:
        (document, *_) = markets_to_documents(await desk.exchange.load_markets())
        assert len(bson.encode(document)) < 1_500
        assert "info" not in document["raw"]
        venue = recording("binance", "exchangeInfo")["symbols"][0]
        assert document["raw"]["limits"]["cost"]["min"] == float(venue["filters"][2]["minNotional"])
        assert json.dumps(document)
