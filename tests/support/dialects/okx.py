"""OKX, v5: newest first, and both ends of a window are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["bar"]),
        from_ms=number(request, "before", 0) + 1,
        to_ms=number(request, "after", now_ms + 1) - 1,
        limit=min(number(request, "limit", 100), 300),
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    rows = [texts(ts, o, h, low, c, v, t, t, 1) for ts, o, h, low, c, v, t in reversed(bars)]
    return {"code": "0", "msg": "", "data": rows}


OKX = Dialect(
    exchange_id="okx",
    symbol="BTC/USDT",
    bars_file="history-candles",
    bars_path="/market/(history-)?candles$",
    timeframes={"1m": "1m", "1H": "1h", "1Dutc": "1d"},
    asked=asked,
    page=page,
    files=(
        ("instType=SPOT", "instruments.spot"),
        ("instType=SWAP", "instruments.swap"),
        ("instType=FUTURES", "instruments.futures"),
    ),
    delisted="LUNA/USDT",
)
OKXUS = replace(OKX, exchange_id="okxus", recorded_at="okx")
MYOKX = replace(OKX, exchange_id="myokx", recorded_at="okx")
