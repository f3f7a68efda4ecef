"""Source checks in requests and answers."""

from typing import Any, Self

from pydantic import BaseModel, Field

from api.schemas.fields import ExchangeId, Limit, QueryFields


class SourceAsked(QueryFields):
    """Which checks; all of them by default."""

    exchange_id: ExchangeId | None = Field(default=None, description="Of this exchange")
    limit: Limit = 100


class SourceView(BaseModel):
    """The last comparison of one series with what the exchange serves."""

    exchange_id: str = Field(description="ccxt's id")
    symbol: str = Field(description="As ccxt writes it")
    timeframe: str = Field(description="How long its bars are")
    checked_at: int = Field(description="Epoch ms")
    compared: int = Field(description="How many bars were compared")
    ok: bool = Field(description="Whether all of them are the same")
    count: int = Field(description="How many differ")
    examples: list[Any] = Field(description="The first of those that differ")

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate(document)


class SourcePage(BaseModel):
    """The newest first: `next_cursor` is always null."""

    items: list[SourceView] = Field(description="The newest first")
    next_cursor: None = Field(default=None, description="Always null")
