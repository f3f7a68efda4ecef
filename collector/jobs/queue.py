"""What operators and other programs do to jobs: add, list, pause, resume, run, delete.

What workers do to jobs, always behind a fence, is in leasing.py. A write that a worker should
notice at once touches `wake`, which every worker's change stream watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson import ObjectId
from bson.errors import InvalidId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.errors import Changed, JobConflict, NotFound
from collector.jobs.job import Job
from collector.jobs.listing import JobListing
from collector.jobs.new_document import is_new, new_document
from collector.jobs.run_now import FRESH_START
from collector.jobs.states import BY_NAME, JobTransition, State, Status
from collector.jobs.wishes import CHANGED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.jobs.job import JobSpec
    from collector.jobs.schedule import Schedule
    from collector.mongo.client import Database, Document

LIVE = ("active", "paused")


class JobQueue:
    """The jobs collection, as seen from outside a worker."""

    def __init__(self, database: Database) -> None:
        self._jobs = database.jobs
        self._listing = JobListing(database.jobs)

    async def add(self, spec: JobSpec) -> tuple[Job, bool]:
        """The job of this key, created if there is no active or paused one.

        Idempotent under any concurrency; the second value is True when this call created it.
        """
        try:
            before = await self._jobs.find_one_and_update(
                {"unique_key": spec.unique_key, "status": {"$in": LIVE}},
                [{"$replaceWith": {"$cond": [is_new(), new_document(spec), "$$ROOT"]}}],
                upsert=True,
                return_document=ReturnDocument.BEFORE,
            )
        except DuplicateKeyError:
            # A concurrent upsert inserted it: it exists now.
            before = await self._by_key(spec)
        if before is not None:
            return Job.from_document(before), False
        made = await self._by_key(spec)
        if made is None:
            raise JobConflict(f"job {spec.unique_key} was deleted while it was being made")
        return Job.from_document(made), True

    async def get(self, job_id: str | ObjectId) -> Job:
        document = await self._jobs.find_one({"_id": _object_id(job_id)})
        return _found(document, job_id)

    async def find(
        self,
        filters: Mapping[str, str | Sequence[str]] | None = None,
        *,
        after: ObjectId | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Job]:
        """A page of jobs in the order they were created, after the job `after`.

        `filters` are exact values of id, exchange_id, type, symbol, timeframe, status and state,
        one or any of several; a state may also be `done` or `paused` (list_filters.py). `search` is
        a text that symbols have in them.
        Deleted jobs are listed only when filtered for by status.
        """
        documents = await self._listing.page(
            filters or {}, after=after, limit=limit, newest_first=newest_first
        )
        return [Job.from_document(document) for document in documents]

    async def with_prefix(
        self, prefix: str, limit: int, statuses: Sequence[str] = LIVE
    ) -> list[Job]:
        """Jobs whose id begins with these hexadecimal digits; live ones unless others are named."""
        first, last = (ObjectId(prefix.ljust(24, digit)) for digit in "0f")
        found = await self._jobs.find(
            {"_id": {"$gte": first, "$lte": last}, "status": {"$in": sorted(statuses)}}, limit=limit
        )
        return [Job.from_document(document) for document in found]

    async def of_ids(self, job_ids: Sequence[ObjectId]) -> list[Job]:
        """Those of them that exist, deleted ones too."""
        documents = await self._jobs.find({"_id": {"$in": list(job_ids)}})
        return [Job.from_document(document) for document in documents]

    async def change(
        self,
        job_id: str | ObjectId,
        *,
        schedule: Schedule | None = None,
        next_run_ms: int | None = None,
        priority: int | None = None,
        params: Mapping[str, Any] | None = None,
        only_if: Document | None = None,
    ) -> Job:
        """Sets what is given; NotFound when deleted. Changed when it has other values by now than
        `only_if`.

        `next_run_ms` comes from the new schedule. It applies to a job that waits for its time and
        to the end of a run under way, not to a job that waits for a token or after a fault.
        """
        fields: Document = dict(CHANGED)
        if schedule is not None:
            fields["schedule"] = {"$literal": schedule.to_document()}
        if next_run_ms is not None:
            at_rest = [{"$eq": ["$state", State.IDLE.value]}, {"$eq": ["$waiting_for", None]}]
            fields["next_run_at"] = {"$cond": [{"$and": at_rest}, next_run_ms, "$next_run_at"]}
            running = {"$eq": ["$state", State.RUNNING.value]}
            fields["next_after_run"] = {"$cond": [running, next_run_ms, None]}
        if priority is not None:
            fields["priority"] = priority
        if params is not None:
            fields["params"] = {"$literal": dict(params)}
        document = await self._jobs.find_one_and_update(
            {"$and": [{"_id": _object_id(job_id), "status": {"$in": list(LIVE)}}, only_if or {}]},
            [{"$set": fields}],
            return_document=ReturnDocument.AFTER,
        )
        if document is None and only_if is not None:
            _check_unchanged(await self.get(job_id), only_if)
        return _found(document, job_id)

    async def active_of_exchange(self, exchange_id: str, *, besides: Sequence[str] = ()) -> int:
        """How many active jobs it has, not counting the types in `besides`."""
        return await self._jobs.count_documents(
            {
                "exchange_id": exchange_id,
                "status": Status.ACTIVE.value,
                "type": {"$nin": list(besides)},
            }
        )

    async def pause(self, job_id: str | ObjectId, *, only_if: Document | None = None) -> Job:
        """Stops it; a running one stops after its current page. Pausing twice is fine."""
        names = ("pause", "pause_running")
        return await self._either(job_id, names, lambda job: job.status is Status.PAUSED, only_if)

    async def resume(self, job_id: str | ObjectId, *, only_if: Document | None = None) -> Job:
        """Lets it run again, starting now. Resuming an active job is fine."""
        names = ("resume", "resume_running")
        return await self._either(job_id, names, lambda job: job.status is Status.ACTIVE, only_if)

    async def run(self, job_id: str | ObjectId, *, only_if: Document | None = None) -> Job:
        """Starts it now, whatever its schedule. A running job runs once more when its run ends."""
        names = ("run", "run_again", "run_settled")
        return await self._either(job_id, names, lambda _: False, only_if)

    async def delete(self, job_id: str | ObjectId, *, only_if: Document | None = None) -> Job:
        """Soft delete; a running worker stops after its current page."""
        return await self._either(job_id, ("delete",), lambda _: False, only_if)

    async def delete_of_exchange(
        self, exchange_id: str, *, only_types: Sequence[str] | None = None
    ) -> int:
        """Deletes every live job of an exchange, or those of the types that are named."""
        chosen = {} if only_types is None else {"type": {"$in": list(only_types)}}
        result = await self._jobs.update_many(
            {"exchange_id": exchange_id, "status": {"$in": list(LIVE)}, **chosen},
            [{"$set": {"status": "deleted", **CHANGED}}],
        )
        return result.modified_count

    async def _either(
        self,
        job_id: str | ObjectId,
        names: tuple[str, ...],
        already: Callable[[Job], bool],
        only_if: Document | None,
    ) -> Job:
        """Applies the first of the named transitions that fits, or returns the job when none has
        to. Changed when it has other values by now than `only_if`.

        Between two reads a worker may lease or settle the job. When a read finds a state from which
        a transition would now start, it tries again instead of refusing.
        """
        transitions = [BY_NAME[name] for name in names]
        while True:
            for transition in transitions:
                moved = await self._move(job_id, transition, only_if or {})
                if moved is not None:
                    return moved
            job = await self.get(job_id)
            _check_unchanged(job, only_if or {})
            if already(job):
                return job
            if not any(transition.starts_from(job.state, job.status) for transition in transitions):
                raise JobConflict(
                    f"job {job.id} is {job.status.value} and {job.state.value}: "
                    f"cannot {names[0]} it"
                )

    async def _move(
        self, job_id: str | ObjectId, transition: JobTransition, only_if: Document
    ) -> Job | None:
        fields: Document = dict(CHANGED)
        if transition.state_to is not None:
            fields["state"] = transition.state_to.value
        if transition.status_to is not None:
            fields["status"] = transition.status_to.value
        if transition.state_to is State.QUEUED:
            fields |= FRESH_START
        if transition.name == "run_again":
            fields["run_again"] = True
        fits = {
            "_id": _object_id(job_id),
            "state": {"$in": sorted(transition.states_from)},
            "status": {"$in": sorted(transition.status_from)},
        }
        document = await self._jobs.find_one_and_update(
            {"$and": [fits, only_if]},
            [{"$set": fields}],
            return_document=ReturnDocument.AFTER,
        )
        return Job.from_document(document) if document else None

    async def _by_key(self, spec: JobSpec) -> Document | None:
        return await self._jobs.find_one(
            {"unique_key": spec.unique_key, "status": {"$in": list(LIVE)}}
        )


def _check_unchanged(job: Job, known: Document) -> None:
    if any(job.document.get(name) != value for name, value in known.items()):
        raise Changed(f"job {job.id} was changed meanwhile")


def _object_id(job_id: str | ObjectId) -> ObjectId:
    try:
        return ObjectId(job_id)
    except (InvalidId, TypeError) as error:
        raise NotFound(f"{job_id!r} is not the id of a job") from error


def _found(document: Document | None, job_id: str | ObjectId) -> Job:
    if document is None:
        raise NotFound(f"there is no job {job_id}")
    return Job.from_document(document)
