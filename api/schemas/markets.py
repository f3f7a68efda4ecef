"""Markets as answers show them."""

from typing import Any, Self

from pydantic import BaseModel, Field

from api.schemas.fields import Asked, ExchangeId, Limit, Name, Symbol


class MarketsAsked(Asked):
    exchange_id: ExchangeId
    base: Name | None = None
    quote: Name | None = None
    active: bool | None = Field(default=None, description="Whether it is listed today")
    limit: Limit = 100
    cursor: Symbol | None = Field(default=None, description="`next_cursor` of the page before")


class MarketView(BaseModel):
    """One market of an exchange. `delisted_at` is when it was first missing from the list."""

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

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate({name: document.get(name) for name in cls.model_fields})


class MarketPage(BaseModel):
    items: list[MarketView]
    next_cursor: str | None
