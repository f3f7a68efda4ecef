"""Runs as answers show them."""

from typing import Any, Self

from api.schemas.fields import Limit, ObjectIdCursor, QueryFields, View
from collector.operations.shown.job import shown_run


class RunsAsked(QueryFields):
    limit: Limit = 100
    cursor: ObjectIdCursor | None = None


class RunView(View):
    """One turn of a job on a worker. Times are epoch ms."""

    id: str
    """Its id"""
    started_at: int
    """When it began"""
    ended_at: int
    """When it ended"""
    duration_ms: int
    """How long it took"""
    outcome: str
    """How it ended, by the names of docs/job-states.md"""
    pages: int
    """Pages that were stored"""
    bars: int
    """Bars that were stored"""
    tokens: int
    """Tokens that were used"""
    error: str | None
    """Why it failed; null when it did not"""
    worker_id: str
    """The worker"""
    fence: int
    """The job's fence during the run"""

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate(shown_run(document))


class RunPage(View):
    """Newest first."""

    items: list[RunView]
    """The runs"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
