"""Tickers as answers show them."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints

from api.schemas.fields import ExchangeId, Limit, QueryFields, Symbol


class TickersAsked(QueryFields):
    """Which tickers; all of them by default."""

    exchange_id: ExchangeId | None = None
    symbol: Symbol | None = None
    limit: Limit = 100
    cursor: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="`next_cursor` of the page before"
    )


class TickerView(BaseModel):
    """What an exchange last reported of one market. Times are epoch ms.

    `volume` is that of a day, in the base currency. `ts` is the exchange's time, or else when it
    answered; `seen_at` is when it was stored.
    """

    exchange_id: str
    symbol: str
    last: float | None
    bid: float | None
    ask: float | None
    volume: float | None
    ts: int
    seen_at: int

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate(document)


class TickerPage(BaseModel):
    items: list[TickerView]
    next_cursor: str | None
