"""Gate, v4: time, turnover, close, high, low, open, volume; seconds."""

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
        timeframe=frame(request.query["interval"]),
        from_ms=number(request, "from", 0) * 1000,
        to_ms=number(request, "to", now_ms // 1000) * 1000,
        limit=1000,
    )


def page(bars: Sequence[Bar]) -> Any:
    return [texts(ts // 1000, t, c, h, low, o, v, "true") for ts, o, h, low, c, v, t in bars]


GATE = Dialect(
    exchange_id="gate",
    symbol="BTC/USDT",
    bars_file="candlesticks",
    bars_path="/candlesticks$",
    timeframes={name: name for name in ("1m", "1h", "1d")},
    asked=asked,
    page=page,
    files=(
        ("/margin/currency_pairs", "margin_pairs"),
        ("/futures/usdt/contracts", "contracts_usdt"),
        ("/contracts", "contracts_none"),
    ),
    delisted="LUNA/USDT",
)
GATEEU = replace(GATE, exchange_id="gateeu", recorded_at="gate")
