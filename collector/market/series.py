"""What a bar belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from collector.market.symbol import checked_exchange_id, symbol_to_name
from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True)
class Series:
    """The bars of one symbol and timeframe on one exchange. Always safe to use as a path."""

    exchange_id: str
    symbol: str
    timeframe: Timeframe

    def __post_init__(self) -> None:
        checked_exchange_id(self.exchange_id)
        symbol_to_name(self.symbol)

    @classmethod
    def of(cls, exchange_id: str, symbol: str, timeframe: str) -> Series:
        """`Series.of("binance", "BTC/USDT", "1m")`. ValueError when a part makes no sense."""
        return cls(exchange_id, symbol, Timeframe.parse(timeframe))

    def __str__(self) -> str:
        return f"{self.exchange_id} {self.symbol} {self.timeframe}"
