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

from collector.errors import JobConflict, NotFound
from collector.jobs import types
from collector.jobs.job import Cursor, Job, JobSpec, RecoveredJob
from collector.jobs.listing import JobListing
from collector.jobs.states import BY_NAME, JobTransition, State, Status
from collector.mongo.client import EPOCH_SECONDS, NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.jobs.schedule import Schedule
    from collector.mongo.client import Database

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
                [{"$replaceWith": {"$cond": [_is_new(), _new_document(spec), "$$ROOT"]}}],
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

    async def with_prefix(self, prefix: str, limit: int) -> list[Job]:
        """Live jobs whose id begins with these hexadecimal digits."""
        first, last = (ObjectId(prefix.ljust(24, digit)) for digit in "0f")
        found = await self._jobs.find(
            {"_id": {"$gte": first, "$lte": last}, "status": {"$in": sorted(LIVE)}}, limit=limit
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
    ) -> Job:
        """Sets what is given; NotFound when deleted.

        `next_run_ms` comes from the new schedule. It applies to a job that waits for its time and
        to the end of a run under way, not to a job that waits for a token or after a fault.
        """
        fields: Document = {"wake": WAKE, "updated_at": "$$NOW"}
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
            {"_id": _object_id(job_id), "status": {"$in": list(LIVE)}},
            [{"$set": fields}],
            return_document=ReturnDocument.AFTER,
        )
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

    async def pause(self, job_id: str | ObjectId) -> Job:
        """Stops it; a running one stops after its current page. Pausing twice is fine."""
        return await self._either(
            job_id, ("pause", "pause_running"), already=lambda job: job.status is Status.PAUSED
        )

    async def resume(self, job_id: str | ObjectId) -> Job:
        """Lets it run again, starting now. Resuming an active job is fine."""
        return await self._either(
            job_id, ("resume", "resume_running"), already=lambda job: job.status is Status.ACTIVE
        )

    async def run(self, job_id: str | ObjectId) -> Job:
        """Starts it now, whatever its schedule. Does nothing to a running job."""
        return await self._either(job_id, ("run", "run_settled"), already=_is_running)

    async def delete(self, job_id: str | ObjectId) -> Job:
        """Soft delete; a running worker stops after its current page."""
        return await self._either(job_id, ("delete",))

    async def delete_of_exchange(
        self, exchange_id: str, *, only_types: Sequence[str] | None = None
    ) -> int:
        """Deletes every live job of an exchange, or those of the types that are named."""
        chosen = {} if only_types is None else {"type": {"$in": list(only_types)}}
        result = await self._jobs.update_many(
            {"exchange_id": exchange_id, "status": {"$in": list(LIVE)}, **chosen},
            [{"$set": {"status": "deleted", "wake": WAKE, "updated_at": "$$NOW"}}],
        )
        return result.modified_count

    async def _either(
        self,
        job_id: str | ObjectId,
        names: tuple[str, ...],
        *,
        already: Callable[[Job], bool] = lambda _: False,
    ) -> Job:
        """Applies the first of the named transitions that fits, or returns the job when none has
        to.

        Between two reads a worker may lease or settle the job. When a read finds a state from which
        a transition would now start, it tries again instead of refusing.
        """
        transitions = [BY_NAME[name] for name in names]
        while True:
            for transition in transitions:
                moved = await self._move(job_id, transition)
                if moved is not None:
                    return moved
            job = await self.get(job_id)
            if already(job):
                return job
            if not any(transition.starts_from(job.state, job.status) for transition in transitions):
                raise JobConflict(
                    f"job {job.id} is {job.status.value} and {job.state.value}: "
                    f"cannot {names[0]} it"
                )

    async def _move(self, job_id: str | ObjectId, transition: JobTransition) -> Job | None:
        fields: Document = {"wake": WAKE, "updated_at": "$$NOW"}
        if transition.state_to is not None:
            fields["state"] = transition.state_to.value
        if transition.status_to is not None:
            fields["status"] = transition.status_to.value
        if transition.state_to is State.QUEUED:
            # A fresh start by an operator: earlier failures no longer count.
            fields |= {"next_run_at": NOW_MS, "waiting_for": None, "refused": None}
            fields |= dict.fromkeys(("attempt", "kills", "kills_alone"), 0)
        document = await self._jobs.find_one_and_update(
            {
                "_id": _object_id(job_id),
                "state": {"$in": sorted(transition.states_from)},
                "status": {"$in": sorted(transition.status_from)},
            },
            [{"$set": fields}],
            return_document=ReturnDocument.AFTER,
        )
        return Job.from_document(document) if document else None

    async def _by_key(self, spec: JobSpec) -> Document | None:
        return await self._jobs.find_one(
            {"unique_key": spec.unique_key, "status": {"$in": list(LIVE)}}
        )


def _is_running(job: Job) -> bool:
    return job.state is State.RUNNING and job.status is Status.ACTIVE


def _is_new() -> Document:
    """In an upsert's pipeline: whether the document is being inserted."""
    return {"$eq": [{"$type": "$created_at"}, "missing"]}


def _new_document(spec: JobSpec) -> Document:
    first_run: Any = NOW_MS if spec.first_run_ms is None else spec.first_run_ms
    due = {"$lte": [first_run, NOW_MS]}
    given = {
        "exchange_id": spec.exchange_id,
        "type": spec.type,
        "symbol": spec.symbol,
        "timeframe": spec.timeframe,
        "unique_key": spec.unique_key,
        "schedule": spec.effective_schedule.to_document(),
        "priority": spec.effective_priority,
        "cursor": spec.cursor.to_document(),
        "params": dict(spec.params),
        **_requested(spec),
    }
    return {
        "$mergeObjects": [
            {"$literal": {**given, **_UNTOUCHED}},
            {
                # An upsert names the new document itself; keep that name.
                "_id": {"$ifNull": ["$_id", "$$REMOVE"]},
                "state": {"$cond": [due, State.QUEUED.value, State.IDLE.value]},
                "next_run_at": first_run,
                "fence": _first_fence(spec),
                "created_at": "$$NOW",
                "updated_at": "$$NOW",
            },
            {} if spec.recovered is None else _as_before(spec, spec.recovered),
        ]
    }


def _requested(spec: JobSpec) -> Document:
    """Where its history is to begin: the cursor moves on, and this stays."""
    row = types.find(spec.type)
    if row is None or row.span is not types.Span.PAST or not isinstance(spec.cursor, Cursor):
        return {}
    if spec.recovered is None:
        return {"requested_since": spec.cursor.since_ms}
    known = spec.recovered.requested_since
    return {} if known is None else {"requested_since": known}


def _first_fence(spec: JobSpec) -> Any:
    """Epoch seconds where an earlier job's fence may be on record outside this database."""
    row = types.find(spec.type)
    outlives = row is not None and row.fence_outlives_job
    return EPOCH_SECONDS if outlives or spec.recovered is not None else 0


def _as_before(spec: JobSpec, before: RecoveredJob) -> Document:
    fields: Document = {
        "status": before.status.value,
        "progress": {"$literal": before.progress and dict(before.progress)},
    }
    if before.declared is not None:
        fields["declared"] = {"$literal": before.declared}
    if spec.cursor.done:
        fields |= {"status": Status.PAUSED.value, "state": State.SUCCESS.value}
    return fields


_UNTOUCHED: Document = {
    "status": Status.ACTIVE.value,
    "attempt": 0,
    "kills": 0,
    "waiting_for": None,
    "progress": None,
    "stats": {
        "runs": 0,
        "success": 0,
        "fail": 0,
        "last_run_at": None,
        "last_success_at": None,
        "last_error": None,
    },
    "lock": {"locked_by": None, "lock_until": None, "lease_token": None},
}


def _object_id(job_id: str | ObjectId) -> ObjectId:
    try:
        return ObjectId(job_id)
    except (InvalidId, TypeError) as error:
        raise NotFound(f"{job_id!r} is not the id of a job") from error


def _found(document: Document | None, job_id: str | ObjectId) -> Job:
    if document is None:
        raise NotFound(f"there is no job {job_id}")
    return Job.from_document(document)
