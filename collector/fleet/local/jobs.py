"""Jobs in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bson import ObjectId

from collector.fleet.interface import Made
from collector.jobs.queue import JobQueue
from collector.jobs.runs import RunHistory
from collector.operations.bulk_jobs import VERBS, change_many
from collector.operations.job_filters import meant_filters
from collector.operations.market_names import MarketNames
from collector.operations.new_job import add_job
from collector.operations.shown.job import shown_job, shown_run

if TYPE_CHECKING:
    from collector.fleet.interface import Filters, Shown
    from collector.mongo.client import Database
    from collector.operations.bulk_jobs import BulkAnswer
    from collector.operations.new_job import JobRequest


@dataclass(frozen=True, slots=True)
class LocalJobs:
    database: Database

    @property
    def _queue(self) -> JobQueue:
        return JobQueue(self.database)

    async def page(self, filters: Filters, limit: int, cursor: str | None = None) -> Shown:
        after = None if cursor is None else ObjectId(cursor)
        chosen = await meant_filters(self.database, filters)
        found = await self._queue.find(chosen, after=after, limit=limit + 1)
        page = [shown_job(job) for job in found[:limit]]
        more = page[-1]["id"] if len(found) > limit else None
        return {"items": page, "next_cursor": more}

    async def with_prefix(self, prefix: str, limit: int) -> list[Shown]:
        return [shown_job(job) for job in await self._queue.with_prefix(prefix, limit)]

    async def get(self, job_id: str) -> Shown:
        return shown_job(await self._queue.get(job_id))

    async def runs(self, job_id: str, limit: int) -> list[Shown]:
        found = await RunHistory(self.database).of(ObjectId(job_id), limit=limit)
        return [shown_run(run) for run in found]

    async def add(self, request: JobRequest) -> Made:
        added = await add_job(self.database, request, MarketNames(self.database))
        notes = () if added.note is None else (added.note,)
        return Made(shown_job(added.job), added.made, notes, added.is_known)

    async def change(self, verb: str, job_id: str) -> Shown:
        return shown_job(await VERBS[verb].apply(self.database, job_id))

    async def change_many(self, verb: str, filters: Filters, *, every: bool) -> BulkAnswer:
        chosen = await meant_filters(self.database, filters)
        return await change_many(self.database, verb, chosen, every=every)
