"""What a bar belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from collector.market.extra import extra_columns
from collector.market.symbol import checked_exchange_id, symbol_to_name
from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True)
class Series:
    """The bars of one symbol and timeframe on one exchange. Always safe to use as a path.

    The timeframe is the market's own: its weeks open on the exchange's day, and closed time has no
    bars.
    """

    exchange_id: str
    symbol: str
    timeframe: Timeframe

    def __post_init__(self) -> None:
        checked_exchange_id(self.exchange_id)
        object.__setattr__(self, "timeframe", self.timeframe.at(self.exchange_id, self.symbol))
        symbol_to_name(self.symbol)

    @classmethod
    def of(cls, exchange_id: str, symbol: str, timeframe: str) -> Series:
        """`Series.of("binance", "BTC/USDT", "1m")`. ValueError when a part makes no sense."""
        return cls(exchange_id, symbol, Timeframe.parse(timeframe))

    @property
    def extra(self) -> tuple[str, ...]:
        """The names of its columns beyond those that every series has."""
        return extra_columns(self.exchange_id)

    def __str__(self) -> str:
        return f"{self.exchange_id} {self.symbol} {self.timeframe}"
