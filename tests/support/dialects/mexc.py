"""MEXC, spot: the end of a window is left out, and 500 bars come of 1000."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["interval"]),
        from_ms=number(request, "startTime", 0),
        to_ms=number(request, "endTime", now_ms + 1) - 1,
        limit=min(number(request, "limit", 500), 500),
    )


def page(bars: Sequence[Bar]) -> Any:
    return [[ts, *texts(o, h, low, c, v), ts + 59_999, str(t)] for ts, o, h, low, c, v, t in bars]


MEXC = Dialect(
    exchange_id="mexc",
    symbol="BTC/USDT",
    bars_file="klines",
    bars_path="/klines$",
    timeframes={"1m": "1m", "60m": "1h", "1d": "1d"},
    asked=asked,
    page=page,
    delisted="LUNA/USDT",
)
