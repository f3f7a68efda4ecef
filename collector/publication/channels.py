"""The names of channels and marks, and how a symbol is written in a payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.market.series import Series

OHLCV = "ohlcv"
PRICES = "price_tik"
HEARTBEAT = "heartbeat"
MARKET_STATUS = "market_status"

_JOINED_SYMBOLS = frozenset({"fxcm"})
"""Exchanges whose symbols are published without the slash: XAUUSD."""


def channel(exchange_id: str, name: str) -> str:
    """`fxcm:ohlcv`, `binance:price_tik` and so on."""
    return f"{exchange_id}:{name}"


def mark_key(exchange_id: str, name: str) -> str:
    """Where the mark of a channel is kept."""
    return f"{exchange_id}:published:{name}"


def series_mark_key(series: Series) -> str:
    """Bars have a mark for each series."""
    name = f"{OHLCV}:{series.symbol}:{series.timeframe.name}"
    return mark_key(series.exchange_id, name)


def published_symbol(exchange_id: str, symbol: str) -> str:
    """As consumers know it."""
    return symbol.replace("/", "") if exchange_id in _JOINED_SYMBOLS else symbol
