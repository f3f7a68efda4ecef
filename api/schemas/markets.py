"""Markets as answers show them."""

from typing import Any, Self

from pydantic import BaseModel, Field

from api.schemas.fields import ExchangeId, Limit, Name, QueryFields, SearchText, Symbol


class MarketsAsked(QueryFields):
    exchange_id: ExchangeId
    base: Name | None = None
    quote: Name | None = None
    active: bool | None = Field(default=None, description="Whether it is listed today")
    limit: Limit = 100
    cursor: Symbol | None = Field(default=None, description="`next_cursor` of the page before")


class MarketsSearched(QueryFields):
    """What to look for, and where."""

    search: SearchText = Field(default="", description="Letters of the symbol; `btcusdt` is fine")
    exchange_id: ExchangeId | None = Field(default=None, description="Of this exchange")
    limit: int = Field(default=30, ge=1, le=200, description="How many markets at most")


class Epoch(BaseModel):
    """A time during which a market was listed, and which is over."""

    listed: int | None
    delisted: int


class MarketView(BaseModel):
    """One market of an exchange. `delisted_at` is when it was first missing from the list.

    A market that came back has `relisted_ms`, since when it is listed, and `epochs`, when it was
    before. `limits` and `precision` are as ccxt describes them.
    """

    exchange_id: str
    symbol: str
    base: str
    quote: str
    kind: str
    active: bool
    timeframes: list[str]
    listed_ms: int | None
    delisted_at: int | None
    first_seen_at: int | None
    seen_at: int | None
    relisted_ms: int | None
    epochs: list[Epoch]
    renamed_to: str | None
    renamed_from: str | None
    limits: dict[str, Any]
    precision: dict[str, Any]

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        values: dict[str, Any] = {"epochs": [], "limits": {}, "precision": {}, **document}
        return cls.model_validate({name: values.get(name) for name in cls.model_fields})


class MarketPage(BaseModel):
    items: list[MarketView]
    next_cursor: str | None
