"""The history of runs: what `GET /jobs/{id}/runs` and the dashboard show.

Runs are written behind the work, in batches: losing the last second of history in a crash is
acceptable. Uneventful runs are many (ten thousand series make fourteen million a day) and are kept
for a day; runs that failed are kept for a month. A TTL index deletes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pymongo.errors import BulkWriteError

from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.jobs.job import Job
    from collector.mongo.client import Database, Document

KEEP_UNEVENTFUL = timedelta(days=1)
KEEP_EVENTFUL = timedelta(days=30)
FLUSH_EVERY = 1.0
MOST_HELD = 10_000
DUPLICATE_KEY = 11_000


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job on a worker."""

    job: Job
    worker_id: str
    fence: int
    started_ms: int
    ended_ms: int
    outcome: str
    pages: int = 0
    bars: int = 0
    tokens: int = 0
    error: str | None = None

    def to_document(self) -> Document:
        ended = datetime.fromtimestamp(self.ended_ms / 1000, UTC)
        keep = KEEP_EVENTFUL if self.error else KEEP_UNEVENTFUL
        return {
            "job_id": self.job.id,
            "exchange_id": self.job.exchange_id,
            "type": self.job.type,
            "symbol": self.job.symbol,
            "timeframe": self.job.timeframe,
            "worker_id": self.worker_id,
            "fence": self.fence,
            "started_at": self.started_ms,
            "ended_at": self.ended_ms,
            "duration_ms": self.ended_ms - self.started_ms,
            "outcome": self.outcome,
            "pages": self.pages,
            "bars": self.bars,
            "tokens": self.tokens,
            "error": self.error,
            "expire_at": ended + keep,
        }


class RunHistory:
    """Collects finished runs; its owner flushes them every `FLUSH_EVERY` seconds."""

    def __init__(self, database: Database) -> None:
        self._runs = database.job_runs
        self._held: list[Document] = []

    def record(self, run: Run) -> None:
        # During a long outage of MongoDB the newest runs are kept and the oldest dropped.
        if len(self._held) >= MOST_HELD:
            del self._held[: MOST_HELD // 2]
        self._held.append(run.to_document())

    async def flush(self) -> None:
        batch, self._held = self._held, []
        if not batch:
            return
        try:
            await self._runs.insert_many(batch, ordered=False)
        except DatabaseUnavailable:
            self._held[:0] = batch
        except BulkWriteError as error:
            # A batch is sent again when its answer was lost; duplicates are then already stored.
            if any(each["code"] != DUPLICATE_KEY for each in error.details["writeErrors"]):
                raise

    async def of(
        self, job_id: ObjectId, *, before: ObjectId | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """The newest runs of a job that are older than the run `before`, newest first."""
        query: Document = {"job_id": job_id}
        if before is not None:
            query["_id"] = {"$lt": before}
        return await self._runs.find(query, sort=[("_id", -1)], limit=limit)
