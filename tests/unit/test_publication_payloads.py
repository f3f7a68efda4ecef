"""The payloads of the four channels, as subscribers get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from bson import ObjectId

from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.publication import payloads
from collector.publication.closed_bars import ClosedBars
from collector.streams.publisher import (
    HeartbeatMessage,
    MarketStatusMessage,
    PriceSnapshot,
    SnapPrice,
)

if TYPE_CHECKING:
    from collector.publication.message import Publication

OPEN = 1_765_557_600_000


def whole(publication: Publication) -> object:
    assert publication.envelope is not None
    head, tail = publication.envelope
    return orjson.loads(head + b",".join(publication.texts) + tail)


def closed(exchange_id: str, symbol: str) -> ClosedBars:
    rows = [(OPEN, 4278.0, 4284.0, 4277.0, 4281.0, 123.0)]
    series = Series.of(exchange_id, symbol, "1m")
    return ClosedBars(series, ObjectId(), 3, OPEN, OPEN + 60_000, None, CandleBatch.of(rows), 1.5)


def test_bars_are_published_with_the_fields_that_subscribers_know() -> None:
    made = payloads.bars(closed("fxcm", "XAU/USD"), OPEN)
    assert made.channel == "fxcm:ohlcv"
    assert whole(made) == {
        "symbol": "XAUUSD",
        "tf": "1m",
        "bars": [
            {
                "open_time": OPEN,
                "close_time": OPEN + 59_999,
                "open": 4278.0,
                "high": 4284.0,
                "low": 4277.0,
                "close": 4281.0,
                "volume": 123.0,
            }
        ],
        "fetched_at": 1.5,
    }


def test_symbols_of_other_exchanges_are_published_unchanged() -> None:
    made = payloads.bars(closed("binance", "BTC/USDT:USDT"), OPEN)
    assert (made.channel, made.key) == (
        "binance:ohlcv",
        "binance:published:ohlcv:BTC/USDT:USDT:1m",
    )
    assert b'"symbol":"BTC/USDT:USDT"' in (made.envelope or (b"",))[0]


def test_a_price_has_exactly_six_keys_in_their_order() -> None:
    price = SnapPrice("XAU/USD", 4209.62, 4210.02, 4209.82, 1764866660.0, 1764866661.0)
    made = payloads.prices(PriceSnapshot("fxcm", 9, 1764866661.0, (price,)))
    assert made.channel == "fxcm:price_tik"
    assert made.texts == (
        b'{"symbol":"XAUUSD","bid":4209.62,"ask":4210.02,"mid":4209.82,'
        b'"tick_ts":1764866660.0,"snap_ts":1764866661.0}',
    )
    assert made.offer.fence == 9


def test_a_heartbeat_and_a_market_status_are_published_as_they_are() -> None:
    beat = {"state": "STREAM", "ts": 12.5, "context": {"supervisor": None}}
    status = {"state": "closed", "next_open_seconds": 60.0, "ts": 12.5}
    heart = payloads.heartbeat(HeartbeatMessage("fxcm", 1, beat))
    market = payloads.market_status(MarketStatusMessage("fxcm", 1, status))
    assert (heart.channel, orjson.loads(heart.texts[0])) == ("fxcm:heartbeat", beat)
    assert (market.channel, orjson.loads(market.texts[0])) == ("fxcm:market_status", status)
    assert heart.offer.until == 12_501


def test_a_heartbeat_names_symbols_as_the_prices_do() -> None:
    context = {"price_stream": {"state": "ok", "symbols_state": {"XAU/USD": {"tick_age": 0.1}}}}
    beat = {"state": "STREAM", "ts": 12.5, "context": context}
    for exchange_id, name in (("fxcm", "XAUUSD"), ("binance", "XAU/USD")):
        made = payloads.heartbeat(HeartbeatMessage(exchange_id, 1, beat))
        stream = orjson.loads(made.texts[0])["context"]["price_stream"]
        assert stream == {"state": "ok", "symbols_state": {name: {"tick_age": 0.1}}}
