"""Bitget, v2: 200 old bars a request, the end of a window left out."""

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
        from_ms=number(request, "startTime", 0),
        to_ms=number(request, "endTime", now_ms + 1) - 1,
        limit=min(number(request, "limit", 100), 200 if "history" in request.path else 1000),
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    rows = [texts(ts, o, h, low, c, v, t, t) for ts, o, h, low, c, v, t in bars]
    return {"code": "00000", "msg": "success", "requestTime": 1735689661234, "data": rows}


BITGET = Dialect(
    exchange_id="bitget",
    symbol="BTC/USDT",
    bars_file="history-candles",
    bars_path="/spot/market/(history-)?candles$",
    timeframes={"1min": "1m", "1h": "1h", "1Dutc": "1d"},
    asked=asked,
    page=page,
    files=(
        ("/margin/currencies", "margin_currencies"),
        ("productType=USDT-FUTURES", "contracts_usdt"),
        ("productType=", "contracts_none"),
    ),
    delisted="LUNA/USDT",
)
