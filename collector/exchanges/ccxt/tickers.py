"""Converts the tickers that ccxt parsed: those of known markets, with a time each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.errors import http_date_ms
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS
from collector.exchanges.port import Ticker

if TYPE_CHECKING:
    from collections.abc import Container

    from collector.exchanges.ccxt.visit import Visit

_CLOCKS_APART_MS = 60_000


def tickers_of(
    exchange_id: str, parsed: Any, visit: Visit, *, known: Container[str], now_ms: int
) -> tuple[Ticker, ...]:
    """The tickers that an answer holds. One without any of a known market is a broken answer."""
    errand = visit.last
    reply = None if errand is None else errand.reply
    server_ms = None if reply is None else http_date_ms(reply.headers.get("date", ""))
    now_ms = now_ms if server_ms is None else server_ms
    tickers = tuple(
        Ticker(
            symbol=symbol,
            last=each.get("last"),
            bid=each.get("bid"),
            ask=each.get("ask"),
            volume=each.get("baseVolume"),
            ts=_time(each.get("timestamp"), now_ms),
        )
        for symbol, each in sorted(parsed.items())
        if symbol in known
    )
    if not tickers:
        raise ExchangeUnavailable(f"{exchange_id}: the answer holds no tickers")
    return tickers


def _time(ts: Any, now_ms: int) -> int:
    """The venue's own time, else when it answered; an impossible time is ignored."""
    fits = isinstance(ts, int) and BEFORE_ALL_MARKETS_MS <= ts <= now_ms + _CLOCKS_APART_MS
    return ts if fits else now_ms
