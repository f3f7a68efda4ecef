"""Gemini: always the latest day of minutes, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(frame(request.path.rsplit("/", 1)[1]), 0, now_ms, 1440, keeps_newest=True)


def page(bars: Sequence[Bar]) -> Any:
    return [list(bar[:6]) for bar in reversed(bars)]


GEMINI = Dialect(
    exchange_id="gemini",
    symbol="BTC/USD",
    bars_file="candles",
    bars_path="/v2/candles/",
    timeframes={"1m": "1m", "1hr": "1h", "1day": "1d"},
    asked=asked,
    page=page,
    has_turnover=False,
    clock_ms=None,
    jumps=True,
)
