"""Changes to many jobs in requests and answers."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from api.schemas.fields import (
    Body,
    ExchangeId,
    Name,
    ObjectIdText,
    SearchText,
    Symbol,
    TimeframeName,
    View,
)
from api.schemas.jobs import JobStateWord

Several = Field(min_length=1, max_length=200)
ManyIds = Field(min_length=1, max_length=1000)


class BulkFilter(Body):
    """Which jobs: those with these values, any of them where several are given."""

    id: (
        ObjectIdText | Annotated[list[ObjectIdText], Field(min_length=1, max_length=1000)] | None
    ) = Field(default=None, description="With this id, or these")
    exchange_id: ExchangeId | Annotated[list[ExchangeId], Several] | None = None
    """Of this exchange, or of these"""
    type: Name | Annotated[list[Name], Several] | None = None
    """Of this type, or of these"""
    symbol: Symbol | Annotated[list[Symbol], Several] | None = None
    """Of this market, or of these"""
    timeframe: TimeframeName | Annotated[list[TimeframeName], Several] | None = None
    """With bars of this length, or of these"""
    state: JobStateWord | Annotated[list[JobStateWord], Several] | None = None
    """In this state, or in these"""
    search: SearchText | None = None
    """Letters of the symbol, as in lists"""
    all: Literal[True] | None = None
    """Every job; needed when nothing else is given"""

    def values(self) -> dict[str, str | list[str]]:
        """The given ones, without `all`."""
        given: dict[str, str | list[str]] = self.model_dump(exclude={"all"}, exclude_none=True)
        return given


class BulkChange(Body):
    """The jobs to change. Finished ones are never among them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"filter": {"exchange_id": "simulated", "state": "failed"}},
                {"filter": {"all": True}},
            ]
        }
    )

    filter: BulkFilter
    """Which jobs"""
    dry_run: bool = False
    """Only count those that would be changed"""


class BulkView(View):
    """What became of it."""

    matched: int = Field(description="Jobs that the filter names, without finished ones")
    changed: int = Field(description="Those that are different now, or would be")
    refused: list[str] = Field(description="Why others could not be changed, at most three reasons")
