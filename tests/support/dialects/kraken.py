"""Kraken: never more than the latest 720 bars, in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    since_ms = number(request, "since", 0) * 1000
    timeframe = frame(request.query["interval"])
    return Asked(timeframe, since_ms + 1, now_ms, 720, keeps_newest=True)


def page(bars: Sequence[Bar]) -> Any:
    rows = [
        [ts // 1000, *texts(o, h, low, c, "93600.1", v), 1843] for ts, o, h, low, c, v, _ in bars
    ]
    last = bars[-2][0] // 1000 if len(bars) > 1 else 0
    return {"error": [], "result": {"XXBTZUSD": rows, "last": last}}


KRAKEN = Dialect(
    exchange_id="kraken",
    symbol="BTC/USD",
    bars_file="OHLC",
    bars_path="/OHLC$",
    timeframes={"1": "1m", "60": "1h", "1440": "1d"},
    asked=asked,
    page=page,
    has_turnover=False,
    clock_ms=1_735_689_661_000,
    delisted="EOS/USD",
    jumps=True,
)
