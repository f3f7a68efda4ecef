"""Stored markets as requests and answers show them."""

from typing import Annotated, Self

from pydantic import BaseModel, Field, StringConstraints

from api.schemas.fields import ExchangeId, QueryFields, SearchText, Symbol
from collector.operations.stored_markets import StoredMarket

PlaceCursor = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class StoredAsked(QueryFields):
    """Which markets; all of them by default."""

    exchange_id: ExchangeId | None = Field(default=None, description="Of this exchange")
    symbol: Symbol | None = Field(default=None, description="Exactly this one")
    search: SearchText = Field(default="", description="Letters of the symbol; `btcusdt` is fine")
    limit: int = Field(default=50, ge=1, le=200, description="How many markets at most")
    cursor: PlaceCursor | None = Field(default=None, description="`next_cursor` of the page before")

    @property
    def after(self) -> tuple[str, str] | None:
        exchange_id, _, symbol = (self.cursor or "").partition("|")
        return None if self.cursor is None else (exchange_id, symbol)


class StoredMarketView(BaseModel):
    """One symbol of an exchange with stored bars."""

    exchange_id: str = Field(description="ccxt's id")
    symbol: str = Field(description="As ccxt writes it")
    timeframes: list[str] = Field(description="With files of their own, the shortest first")
    made: list[str] = Field(description="Longer ones that are made of these on reading")
    first_ts: int | None = Field(description="When the first bar opens; null when there is none")
    end_ts: int | None = Field(description="Up to where bars are stored")

    @classmethod
    def of(cls, market: StoredMarket) -> Self:
        return cls(
            exchange_id=market.exchange_id,
            symbol=market.symbol,
            timeframes=list(market.stored),
            made=list(market.made),
            first_ts=market.first_ms,
            end_ts=market.end_ms,
        )


class StoredPage(BaseModel):
    """By exchange and symbol."""

    items: list[StoredMarketView] = Field(description="By exchange and symbol")
    next_cursor: str | None = Field(description="For the next page; null on the last")
