"""HTX, spot: newest first, rows by name, seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["period"]),
        from_ms=number(request, "from", 0) * 1000,
        to_ms=number(request, "to", now_ms // 1000) * 1000,
        limit=min(number(request, "size", 150), 1000),
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    names = ("id", "open", "high", "low", "close", "amount", "vol")
    rows = [
        {**dict(zip(names, (ts // 1000, *rest), strict=True)), "count": 1843}
        for ts, *rest in reversed(bars)
    ]
    return {
        "ch": "market.btcusdt.kline.1min",
        "status": "ok",
        "ts": 1735689661234,
        "data": rows,
    }


HTX = Dialect(
    exchange_id="htx",
    symbol="BTC/USDT",
    bars_file="candles",
    bars_path="/market/history/candles$",
    timeframes={"1min": "1m", "60min": "1h", "1day": "1d"},
    asked=asked,
    page=page,
    delisted="LUNA/USDT",
)
