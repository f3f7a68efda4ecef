"""Changes to many jobs in requests and answers."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.fields import (
    Body,
    ExchangeId,
    Name,
    ObjectIdText,
    SearchText,
    Symbol,
    TimeframeName,
)
from api.schemas.jobs import JobStateWord

Several = Field(min_length=1, max_length=200)
ManyIds = Field(min_length=1, max_length=1000)


class BulkFilter(Body):
    """Which jobs: those with these values, any of them where several are given."""

    id: (
        ObjectIdText | Annotated[list[ObjectIdText], Field(min_length=1, max_length=1000)] | None
    ) = None
    exchange_id: ExchangeId | Annotated[list[ExchangeId], Several] | None = None
    type: Name | Annotated[list[Name], Several] | None = None
    symbol: Symbol | Annotated[list[Symbol], Several] | None = None
    timeframe: TimeframeName | Annotated[list[TimeframeName], Several] | None = None
    state: JobStateWord | Annotated[list[JobStateWord], Several] | None = None
    search: SearchText | None = Field(
        default=None, description="Letters of the symbol, as in lists"
    )
    all: Literal[True] | None = Field(
        default=None, description="Every job; needed when nothing else is given"
    )

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
    dry_run: bool = Field(default=False, description="Only count those that would be changed")


class BulkView(BaseModel):
    """What became of it."""

    matched: int = Field(description="Jobs that the filter names, without finished ones")
    changed: int = Field(description="Those that are different now, or would be")
    refused: list[str] = Field(description="Why others could not be changed, at most three reasons")
