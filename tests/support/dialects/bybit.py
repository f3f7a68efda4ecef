"""Bybit, v5: newest first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    timeframe = frame(request.query["interval"])
    start, limit = number(request, "start", 0), min(number(request, "limit", 200), 1000)
    return Asked(timeframe, start, start + limit * timeframe.ms - 1, limit)


def page(bars: Sequence[Bar]) -> Any:
    rows = [texts(*bar) for bar in reversed(bars)]
    result = {"category": "spot", "symbol": "BTCUSDT", "list": rows}
    return {"retCode": 0, "retMsg": "OK", "result": result, "retExtInfo": {}, "time": 1735689725000}


BYBIT = Dialect(
    exchange_id="bybit",
    symbol="BTC/USDT",
    bars_file="kline",
    bars_path="/market/kline$",
    timeframes={"1": "1m", "60": "1h", "D": "1d"},
    asked=asked,
    page=page,
    files=(
        ("status=", "instruments-info.prelaunch"),
        ("category=spot", "instruments-info.spot"),
        ("category=linear", "instruments-info.linear"),
        ("category=inverse", "instruments-info.inverse"),
    ),
)
BYBITEU = replace(BYBIT, exchange_id="bybiteu", recorded_at="bybit")
