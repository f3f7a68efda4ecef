"""KuCoin. Spot: newest first; open, close, high, low; seconds. Futures count contracts."""

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
        timeframe=frame(request.query["type"]),
        from_ms=number(request, "startAt", 0) * 1000,
        to_ms=number(request, "endAt", 0) * 1000 - 1,
        limit=1500,
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    rows = [texts(ts // 1000, o, c, h, low, v, t) for ts, o, h, low, c, v, t in reversed(bars)]
    return {"code": "200000", "data": rows}


def asked_futures(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["granularity"]),
        from_ms=number(request, "from", 0),
        to_ms=number(request, "to", now_ms) - 1,
        limit=200,
        keeps_newest=True,
    )


def page_futures(bars: Sequence[Bar]) -> Any:
    """A contract is a thousandth of a bitcoin."""
    rows = [[ts, o, h, low, c, round(v * 1000)] for ts, o, h, low, c, v, _ in bars]
    return {"code": "200000", "data": rows}


KUCOIN = Dialect(
    exchange_id="kucoin",
    symbol="BTC/USDT",
    bars_file="candles",
    bars_path="/market/candles$",
    timeframes={"1min": "1m", "1hour": "1h", "1day": "1d"},
    asked=asked,
    page=page,
    delisted="LUNA/USDT",
)
KUCOINFUTURES = replace(
    KUCOIN,
    exchange_id="kucoinfutures",
    symbol="BTC/USDT:USDT",
    bars_file="query",
    bars_path="/kline/query$",
    timeframes={"1": "1m", "60": "1h", "1440": "1d"},
    asked=asked_futures,
    page=page_futures,
    has_turnover=False,
    delisted=None,
)
