"""Bitfinex, v2: open, close, high, low; numbers, not text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.path.split(":")[1]),
        from_ms=number(request, "start", 0),
        to_ms=number(request, "end", now_ms),
        limit=min(number(request, "limit", 100), 10_000),
        keeps_newest=request.query.get("sort") != "1",
    )


def page(bars: Sequence[Bar]) -> Any:
    return [[ts, o, c, h, low, v] for ts, o, h, low, c, v, _ in bars]


BITFINEX = Dialect(
    exchange_id="bitfinex",
    symbol="BTC/USD",
    bars_file="hist",
    bars_path="/hist$",
    timeframes={"1m": "1m", "1h": "1h", "1D": "1d"},
    asked=asked,
    page=page,
    files=(("pub:list:currency", "conf_currencies"), ("pub:info:pair", "conf_pairs")),
    has_turnover=False,
    clock_ms=None,
    jumps=True,
)
