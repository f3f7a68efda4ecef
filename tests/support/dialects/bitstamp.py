"""Bitstamp: rows by name, seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["step"]),
        from_ms=number(request, "start", 0) * 1000,
        to_ms=number(request, "end", now_ms // 1000) * 1000,
        limit=min(number(request, "limit", 100), 1000),
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    names = ("timestamp", "open", "high", "low", "close", "volume")
    rows = [dict(zip(names, texts(ts // 1000, *rest[:5]), strict=True)) for ts, *rest in bars]
    return {"data": {"ohlc": rows, "pair": "BTC/USD"}}


BITSTAMP = Dialect(
    exchange_id="bitstamp",
    symbol="BTC/USD",
    bars_file="btcusd",
    bars_path="/ohlc/btcusd/?$",
    timeframes={"60": "1m", "3600": "1h", "86400": "1d"},
    asked=asked,
    page=page,
    has_turnover=False,
    clock_ms=None,
    delisted="LUNA/USD",
)
