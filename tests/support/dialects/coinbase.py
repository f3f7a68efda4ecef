"""Coinbase, Advanced Trade: newest first, rows by name, seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["granularity"]),
        from_ms=number(request, "start", 0) * 1000,
        to_ms=number(request, "end", 0) * 1000,
        limit=350,
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    names = ("start", "open", "high", "low", "close", "volume")
    rows = [
        dict(zip(names, texts(ts // 1000, *rest[:5]), strict=True)) for ts, *rest in reversed(bars)
    ]
    return {"candles": rows}


COINBASE = Dialect(
    exchange_id="coinbase",
    symbol="BTC/USD",
    bars_file="candles",
    bars_path="/candles$",
    timeframes={"ONE_MINUTE": "1m", "ONE_HOUR": "1h", "ONE_DAY": "1d"},
    asked=asked,
    page=page,
    files=(("product_type=FUTURE", "products.future"),),
    has_turnover=False,
    clock_ms=1_735_689_661_000,
    delisted="LUNA/USD",
)
