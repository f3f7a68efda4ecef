"""Refused rows as answers show them."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints

from api.schemas.fields import ExchangeId, Limit, QueryFields, Symbol, TimeframeName
from collector.store.refused_rows import RefusedRow


class QuarantineAsked(QueryFields):
    """Which rows; all of them by default."""

    exchange_id: ExchangeId | None = None
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None
    limit: Limit = 100
    cursor: Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="`next_cursor` of the page before"
    )


class RefusedView(BaseModel):
    """A row that an exchange sent and that is no bar. Times are epoch ms.

    `row` is as it came. `ts` is null when its time cannot be read. `reason` is listed in
    docs/errors.md.
    """

    exchange_id: str
    symbol: str
    timeframe: str
    ts: int | None
    reason: str
    code: str
    row: list[Any]
    known_at: int
    fence: int

    @classmethod
    def of(cls, refused: RefusedRow) -> Self:
        return cls.model_validate(refused.facts())


class QuarantinePage(BaseModel):
    """By exchange, symbol and file."""

    items: list[RefusedView]
    next_cursor: str | None
