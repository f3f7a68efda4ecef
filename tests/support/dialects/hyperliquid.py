"""Hyperliquid: one endpoint for everything, with a JSON body; bars by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import BODY, Asked, Dialect, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    wanted = request[BODY]["req"]
    return Asked(
        timeframe=frame(wanted["interval"]),
        from_ms=wanted["startTime"],
        to_ms=wanted["endTime"],
        limit=5_000,
        keeps_newest=True,
    )


def page(bars: Sequence[Bar]) -> Any:
    names = ("o", "h", "l", "c", "v")
    return [
        {"t": ts, "T": ts + 59_999, "s": "BTC", "i": "1m", "n": 1843}
        | dict(zip(names, texts(*rest[:5]), strict=True))
        for ts, *rest in bars
    ]


HYPERLIQUID = Dialect(
    exchange_id="hyperliquid",
    symbol="BTC/USDC:USDC",
    bars_file="candleSnapshot",
    bars_path="/info candleSnapshot$",
    timeframes={name: name for name in ("1m", "1h", "1d")},
    asked=asked,
    page=page,
    has_turnover=False,
    delisted="MATIC/USDC:USDC",
)
