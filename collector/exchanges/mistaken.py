"""What is wrong with a series, as far as it is known without the exchange's markets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from collector.exchanges.ccxt.catalog import ccxt_class, ccxt_ids
from collector.exchanges.quirks.lookup import WRITTEN_DOWN
from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True)
class Mistake:
    """Why a name cannot exist, and which name may be meant instead."""

    code: str
    reason: str
    instead: tuple[str, ...] = ()


def mistaken_symbol(exchange_id: str, symbol: str) -> Mistake | None:
    """A symbol that no market of this exchange can have; None when it may have one."""
    if _is_timeframe(symbol):
        reason = f"{symbol!r} is a timeframe, not a market such as BTC/USDT"
        return Mistake("symbol_is_timeframe", reason)
    written = WRITTEN_DOWN.get(exchange_id)
    kind = kind_of(symbol)
    sibling = None if written is None or kind is None else written.elsewhere.get(kind)
    if sibling is None:
        return None
    reason = f"{exchange_id} has no {symbol!r}: such markets are on {sibling}"
    return Mistake("other_exchange", reason, (sibling,))


@cache
def without_bars(exchange_id: str) -> Mistake | None:
    """An exchange that gives no bars; None for one that does. May take an import of its module."""
    # Exchanges of other providers have bars, or they would not be offered.
    if exchange_id in WRITTEN_DOWN or exchange_id not in ccxt_ids():
        return None
    has = ccxt_class(exchange_id)().has
    if has.get("fetchOHLCV") is True:
        return None
    reason = f"{exchange_id} serves no bars"
    if has.get("fetchTrades") is True:
        reason += "; a job of type ohlcv_from_trades makes them of its trades"
    return Mistake("no_bars", reason)


@cache
def served_timeframes(exchange_id: str) -> tuple[str, ...]:
    """What ccxt lists for the exchange; empty when it lists none. May take an import."""
    if exchange_id not in ccxt_ids():
        return ()
    listed = ccxt_class(exchange_id)().timeframes or {}
    return tuple(name for name in listed if _is_timeframe(name))


def kind_of(symbol: str) -> str | None:
    """spot, linear or inverse, by ccxt's way to write symbols; None for another way."""
    pair, _, settled = symbol.partition(":")
    base, slash, quote = pair.partition("/")
    if not slash:
        return None
    if not settled:
        return "spot"
    currency = settled.partition("-")[0]
    return {quote: "linear", base: "inverse"}.get(currency)


def _is_timeframe(text: str) -> bool:
    try:
        Timeframe.parse(text)
    except ValueError:
        return False
    return True
