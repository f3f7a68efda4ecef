"""The payloads of the four channels, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from collector.publication.channels import (
    HEARTBEAT,
    MARKET_STATUS,
    OHLCV,
    PRICES,
    channel,
    mark_key,
    published_symbol,
    series_mark_key,
)
from collector.publication.gate import GateOffer
from collector.publication.message import Publication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.publication.closed_bars import ClosedBars
    from collector.streams.publisher import HeartbeatMessage, MarketStatusMessage, PriceSnapshot


def bars(closed: ClosedBars, proven: int) -> Publication:
    """`{"symbol", "tf", "bars": [...], "fetched_at"}`: one message for all bars that are new."""
    series, rows = closed.series, closed.candles
    frame = series.timeframe
    symbol = published_symbol(series.exchange_id, series.symbol)
    head = orjson.dumps({"symbol": symbol, "tf": frame.name})[:-1] + b',"bars":['
    tail = b'],"fetched_at":' + orjson.dumps(closed.fetched_at) + b"}"
    ends = frame.ends(rows.ts)
    texts = tuple(
        orjson.dumps(
            {
                "open_time": int(rows.ts[at]),
                "close_time": int(ends[at]) - 1,
                "open": float(rows.o[at]),
                "high": float(rows.h[at]),
                "low": float(rows.l[at]),
                "close": float(rows.c[at]),
                "volume": float(rows.v[at]),
            }
        )
        for at in range(len(rows))
    )
    times = tuple(int(each) for each in rows.ts)
    offer = GateOffer(closed.fence, proven, closed.from_ms, closed.until_ms, times)
    name = channel(series.exchange_id, OHLCV)
    return Publication(series_mark_key(series), name, offer, texts, (head, tail))


def prices(snapshot: PriceSnapshot) -> Publication:
    """One message a symbol; all of a snapshot are admitted together or not at all."""
    exchange_id = snapshot.exchange_id
    texts = tuple(
        orjson.dumps({**each.payload(), "symbol": published_symbol(exchange_id, each.symbol)})
        for each in snapshot.prices
    )
    return _last(exchange_id, PRICES, snapshot.fence, snapshot.snap_ts, texts)


def heartbeat(message: HeartbeatMessage) -> Publication:
    """Its symbols are written as in the prices' channel."""
    payload = _with_published_symbols(message.exchange_id, message.payload)
    text = orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY)
    return _last(message.exchange_id, HEARTBEAT, message.fence, message.payload["ts"], (text,))


def _with_published_symbols(exchange_id: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    context = payload.get("context") or {}
    stream = context.get("price_stream")
    if not stream:
        return payload
    symbols = {
        published_symbol(exchange_id, symbol): state
        for symbol, state in stream["symbols_state"].items()
    }
    return {
        **payload,
        "context": {**context, "price_stream": {**stream, "symbols_state": symbols}},
    }


def market_status(message: MarketStatusMessage) -> Publication:
    text = orjson.dumps(message.payload)
    return _last(message.exchange_id, MARKET_STATUS, message.fence, message.payload["ts"], (text,))


def _last(
    exchange_id: str, name: str, fence: int, at_seconds: float, texts: tuple[bytes, ...]
) -> Publication:
    """A state at a moment. Nothing lies between two of them, so there are no gaps."""
    at = round(at_seconds * 1000)
    offer = GateOffer(fence, 0, 0, at + 1, (at,) * len(texts))
    return Publication(mark_key(exchange_id, name), channel(exchange_id, name), offer, texts)
