"""Workers as answers show them."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field


class WorkerView(BaseModel):
    """One worker process that has shown a sign of life within the last 40 seconds."""

    id: str
    host: str
    pid: int
    concurrency: int = Field(description="Jobs that it runs at a time, at most")
    metrics: str | None = Field(description="host:port of its own `/metrics`")
    started_at: datetime
    seen_at: datetime

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate({**document, "id": document["_id"]})


class WorkerPage(BaseModel):
    """All of them: `next_cursor` is always null."""

    items: list[WorkerView]
    next_cursor: None = None


class ScrapeTargets(BaseModel):
    """One entry of Prometheus' HTTP service discovery."""

    targets: list[str]
    labels: dict[str, str]
