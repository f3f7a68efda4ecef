"""Workers as answers show them."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from api.schemas.fields import View
from collector.operations.shown.status import shown_worker


class DiskView(View):
    """The disk that a worker writes to."""

    free_bytes: int
    """What is left"""
    total_bytes: int
    """What it holds in all"""


class RedisView(View):
    """A Redis that a worker cannot publish to."""

    since: int = Field(description="Epoch ms", examples=[1735689600000])
    error: str
    """The kind of its last failure"""


class WorkerView(View):
    """One worker process that has shown a sign of life within the last 40 seconds."""

    id: str
    """Its name"""
    host: str
    """The machine"""
    pid: int
    """The process"""
    concurrency: int | None
    """Jobs that it runs at a time, at most"""
    metrics: str | None
    """host:port of its own `/metrics`"""
    disk: DiskView | None = None
    """The disk of the lake; null for an object store"""
    redis: RedisView | None = None
    """Null while Redis takes messages, and where nothing is published"""
    started_at: datetime
    """When it was first seen"""
    seen_at: datetime
    """When it was last seen"""

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate(shown_worker(document))


class WorkerPage(View):
    """All of them: `next_cursor` is always null."""

    items: list[WorkerView]
    """The workers, by id"""
    next_cursor: None = None
    """Always null"""


class ScrapeTargets(View):
    """One entry of Prometheus' HTTP service discovery."""

    targets: list[str]
    """Addresses to scrape"""
    labels: dict[str, str]
    """What Prometheus adds to what it finds there"""
