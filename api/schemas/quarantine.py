"""Refused rows as answers show them."""

from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from api.schemas.fields import ExchangeId, Limit, QueryFields, Symbol, TimeframeName, View
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


class RefusedView(View):
    """A row that an exchange sent and that is no bar. Times are epoch ms."""

    exchange_id: str
    """The exchange that sent it"""
    symbol: str
    """The market"""
    timeframe: str
    """The length of its bars"""
    ts: int | None
    """Its opening time; null when that cannot be read"""
    reason: str
    """What is wrong with it, as listed in docs/errors.md"""
    code: str
    """The same for programs"""
    row: list[Any]
    """The row as it came"""
    known_at: int
    """When it came"""
    fence: int
    """The fence of the job that received it"""

    @classmethod
    def of(cls, refused: RefusedRow) -> Self:
        return cls.model_validate(refused.facts())


class QuarantinePage(View):
    """By exchange, symbol and file."""

    items: list[RefusedView]
    """By exchange, symbol and file"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
