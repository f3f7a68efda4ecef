"""Binance: spot, USD-M, COIN-M."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.support.dialects.dialect import Asked, Dialect, number, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from tests.support.dialects.dialect import Bar

_DAY_MS = 86_400_000
_REST = (1843, "3.58930000", "335651.18225810", "0")


def asked(request: web.Request, frame: Any, now_ms: int) -> Asked:
    return Asked(
        timeframe=frame(request.query["interval"]),
        from_ms=number(request, "startTime", 0),
        to_ms=number(request, "endTime", now_ms),
        limit=min(number(request, "limit", 500), 1000),
    )


def asked_usdm(request: web.Request, frame: Any, now_ms: int) -> Asked:
    whole = asked(request, frame, now_ms)
    return replace(whole, limit=min(number(request, "limit", 500), 1500))


def asked_coinm(request: web.Request, frame: Any, now_ms: int) -> Asked:
    """The rows nearest the end, and at most 200 days of them."""
    whole = asked(request, frame, now_ms)
    return replace(
        whole, from_ms=max(whole.from_ms, whole.to_ms + 1 - 200 * _DAY_MS), keeps_newest=True
    )


def page(bars: Sequence[Bar]) -> Any:
    return [
        [ts, *texts(o, h, low, c, v), ts + 59_999, str(t), *_REST]
        for ts, o, h, low, c, v, t in bars
    ]


def page_coinm(bars: Sequence[Bar]) -> Any:
    """Volume is in contracts, and column 7 in the base coin."""
    return [
        [ts, *texts(o, h, low, c, "1234"), ts + 59_999, str(v), 210, "600", "0.64172011", "0"]
        for ts, o, h, low, c, v, _ in bars
    ]


BINANCE = Dialect(
    exchange_id="binance",
    symbol="BTC/USDT",
    bars_file="klines",
    bars_path="/klines$",
    timeframes={name: name for name in ("1m", "1h", "1d")},
    asked=asked,
    page=page,
    delisted="LUNA/USDT",
    jumps=True,
)
BINANCEUSDM = replace(
    BINANCE,
    exchange_id="binanceusdm",
    symbol="BTC/USDT:USDT",
    asked=asked_usdm,
    delisted=None,
)
BINANCECOINM = replace(
    BINANCEUSDM,
    exchange_id="binancecoinm",
    symbol="BTC/USD:BTC",
    asked=asked_coinm,
    page=page_coinm,
    has_turnover=False,
    jumps=False,
)
BINANCEUS = replace(BINANCE, exchange_id="binanceus", recorded_at="binance")
