"""Which of ccxt's websocket methods gives the prices of an exchange, and how many symbols at once.

Pure. The best there is comes first: best offers, then tickers, then trades, whose price stands for
both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from collector.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SYMBOLS_AT_ONCE = 100
OF_A_VENUE: Mapping[str, int] = MappingProxyType({"bybit": 10, "binance": 200, "kucoin": 100})
"""Where a venue limits what one subscription may name, by its own documentation."""


@dataclass(frozen=True, slots=True)
class WatchMethod:
    """A method of ccxt's. `takes_many`: it takes a list of symbols, else one."""

    name: str
    takes_many: bool
    gives_trades: bool = False


_PRICES = (
    ("watchBidsAsks", WatchMethod("watch_bids_asks", takes_many=True)),
    ("watchTickers", WatchMethod("watch_tickers", takes_many=True)),
    ("watchTicker", WatchMethod("watch_ticker", takes_many=False)),
    (
        "watchTradesForSymbols",
        WatchMethod("watch_trades_for_symbols", takes_many=True, gives_trades=True),
    ),
    ("watchTrades", WatchMethod("watch_trades", takes_many=False, gives_trades=True)),
)
_BARS = (
    ("watchOHLCVForSymbols", WatchMethod("watch_ohlcv_for_symbols", takes_many=True)),
    ("watchOHLCV", WatchMethod("watch_ohlcv", takes_many=False)),
)


def price_method(exchange_id: str, has: Mapping[str, object]) -> WatchMethod:
    """The method for prices. BadRequest when the exchange has none."""
    found = next((method for name, method in _PRICES if has.get(name) is True), None)
    if found is None:
        raise BadRequest(f"{exchange_id} sends no live prices")
    return found


def bar_method(has: Mapping[str, object]) -> WatchMethod | None:
    """The method for running bars, None when the exchange sends none."""
    return next((method for name, method in _BARS if has.get(name) is True), None)


def chunks(exchange_id: str, symbols: Sequence[str], method: WatchMethod) -> list[list[str]]:
    """The symbols as one call of the method may name them."""
    size = OF_A_VENUE.get(exchange_id, SYMBOLS_AT_ONCE) if method.takes_many else 1
    return [list(symbols[at : at + size]) for at in range(0, len(symbols), size)]
