"""Runs as answers show them."""

from typing import Any, Self

from pydantic import BaseModel

from api.schemas.fields import Limit, ObjectIdCursor, QueryFields


class RunsAsked(QueryFields):
    limit: Limit = 100
    cursor: ObjectIdCursor | None = None


class RunView(BaseModel):
    """One turn of a job on a worker. Times are epoch ms."""

    id: str
    started_at: int
    ended_at: int
    duration_ms: int
    outcome: str
    pages: int
    bars: int
    tokens: int
    error: str | None
    worker_id: str
    fence: int

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate({**document, "id": str(document["_id"])})


class RunPage(BaseModel):
    """Newest first."""

    items: list[RunView]
    next_cursor: str | None
