"""`published_ts` of a series' incremental job: every bar that opened before it was published.

It follows the mark in Redis by a moment, and stands in for the mark when that is lost. It only ever
grows, and only by what was published, so that any worker may write it: no fence is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymongo import UpdateOne

from collector.jobs import types
from collector.jobs.job import Job
from collector.jobs.lag import LAG_INDEX
from collector.jobs.states import Status

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.mongo.client import Database

MOST_OWED = 1_000
"""Series that one look finds; the next look finds others."""


@dataclass(frozen=True, slots=True)
class OwedBars:
    """A series whose bars are stored further than they are published."""

    job: Job
    published_ms: int


def published_ms(job: Job) -> int | None:
    """None when nothing of the series was ever published."""
    found = job.document.get("published_ts")
    return None if found is None else int(found)


class PublishedTimes:
    """Gathers what was published and writes it in one statement for many series."""

    def __init__(self, database: Database) -> None:
        self._jobs = database.jobs
        self._unwritten: dict[ObjectId, int] = {}

    def note(self, job_id: ObjectId, until_ms: int) -> None:
        """For the next `flush`."""
        self._unwritten[job_id] = max(until_ms, self._unwritten.get(job_id, until_ms))

    async def flush(self) -> None:
        """Writes what was noted. What could not be written waits for the next time."""
        if not self._unwritten:
            return
        noted, self._unwritten = self._unwritten, {}
        updates = [
            UpdateOne({"_id": job_id}, {"$max": {"published_ts": until_ms}})
            for job_id, until_ms in noted.items()
        ]
        try:
            await self._jobs.bulk_write(updates, ordered=False)
        except BaseException:
            for job_id, until_ms in noted.items():
                self.note(job_id, until_ms)
            raise

    async def owed(self) -> list[OwedBars]:
        """Series that are stored further than they are published."""
        found = await self._jobs.find(
            {
                "type": types.OHLCV_INCREMENTAL.name,
                "status": Status.ACTIVE.value,
                "$expr": {"$lt": ["$published_ts", "$cursor.since_ms"]},
                "published_ts": {"$exists": True},
            },
            hint=LAG_INDEX,
            limit=MOST_OWED,
        )
        jobs = [Job.from_document(document) for document in found]
        return [OwedBars(job, published_ms(job) or 0) for job in jobs]
