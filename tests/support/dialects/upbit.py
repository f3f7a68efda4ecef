"""Upbit: the newest bars before a moment, by name; the time as a text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    before = datetime.fromisoformat(request.query["to"])
    return Asked(
        timeframe=frame(request.path.split("/candles/")[1]),
        from_ms=0,
        to_ms=round(before.timestamp() * 1000) - 1,
        limit=min(number(request, "count", 200), 200),
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    return [
        {
            "market": "KRW-BTC",
            "candle_date_time_utc": datetime.fromtimestamp(ts / 1000, UTC).isoformat()[:19],
            "opening_price": o,
            "high_price": h,
            "low_price": low,
            "trade_price": c,
            "timestamp": ts + 59_000,
            "candle_acc_trade_price": t,
            "candle_acc_trade_volume": v,
            "unit": 1,
        }
        for ts, o, h, low, c, v, t in reversed(bars)
    ]


UPBIT = Dialect(
    exchange_id="upbit",
    symbol="BTC/KRW",
    bars_file="candles",
    bars_path="/candles/",
    timeframes={"minutes/1": "1m", "minutes/60": "1h", "days": "1d"},
    asked=asked,
    page=page,
    clock_ms=None,
)
