"""What operators and other programs do to jobs: add, list, pause, resume, run, delete.

What workers do to jobs, always behind a fence, stands in leasing.py. A write that a worker should
notice at once touches `wake`, which every worker's change stream watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson import ObjectId
from bson.errors import InvalidId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.errors import JobConflict, NotFound
from collector.jobs.job import Job, JobSpec
from collector.jobs.states import BY_NAME, State, Status, Transition
from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.jobs.schedule import Schedule
    from collector.mongo.client import Database

LIVE = ("active", "paused")


class JobQueue:
    """The jobs collection, as seen from outside a worker."""

    def __init__(self, database: Database) -> None:
        self._jobs = database.jobs

    async def add(self, spec: JobSpec) -> tuple[Job, bool]:
        """The job of this key, made if there is no active or paused one.

        Idempotent under any concurrency; the second value tells whether this call made it.
        """
        try:
            before = await self._jobs.find_one_and_update(
                {"unique_key": spec.unique_key, "status": {"$in": LIVE}},
                [{"$replaceWith": {"$cond": [_is_new(), _new_document(spec), "$$ROOT"]}}],
                upsert=True,
                return_document=ReturnDocument.BEFORE,
            )
        except DuplicateKeyError:
            # Two upserts met and the other one inserted: it is there now.
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
        filters: Mapping[str, str] | None = None,
        *,
        after: ObjectId | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Job]:
        """A page of jobs in the order they were made, after the job `after`.

        `filters` are exact values of exchange_id, type, symbol, timeframe, status and state.
        Deleted jobs are listed only when asked for by status.
        """
        query: Document = {name: {"$eq": value} for name, value in (filters or {}).items()}
        query.setdefault("status", {"$in": list(LIVE)})
        if after is not None:
            query["_id"] = {"$lt" if newest_first else "$gt": after}
        options: Document = {"sort": [("_id", -1 if newest_first else 1)], "limit": limit}
        if "symbol" not in query:
            # Walked in order of ids, a page costs what it holds. Any other index would sort all
            # that matches once more for every page; only a symbol is rare enough for that.
            options["hint"] = [("_id", 1)]
        documents = await self._jobs.find(query, **options)
        return [Job.from_document(document) for document in documents]

    async def fetching(self, exchange_id: str) -> list[Job]:
        """The backfills and gap jobs of an exchange that are not done, paused ones too."""
        documents = await self._jobs.find(
            {
                "exchange_id": exchange_id,
                "type": {"$in": ["ohlcv_backfill", "gap_backfill"]},
                "status": {"$in": list(LIVE)},
                "cursor.done": {"$ne": True},
            }
        )
        return [Job.from_document(document) for document in documents]

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
        """Sets what is given. A run under way ends by the old schedule; NotFound when deleted.

        `next_run_ms` is when the new schedule says; it applies to a job that waits for its time,
        not to one that waits for a token or after a fault.
        """
        fields: Document = {"wake": WAKE, "updated_at": "$$NOW"}
        if schedule is not None:
            fields["schedule"] = {"$literal": schedule.to_document()}
        if next_run_ms is not None:
            at_rest = [{"$eq": ["$state", State.IDLE.value]}, {"$eq": ["$waiting_for", None]}]
            fields["next_run_at"] = {"$cond": [{"$and": at_rest}, next_run_ms, "$next_run_at"]}
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
        """How many of its jobs are active, leaving out the types in `besides`."""
        return await self._jobs.count_documents(
            {
                "exchange_id": exchange_id,
                "status": Status.ACTIVE.value,
                "type": {"$nin": list(besides)},
            }
        )

    async def counts(self) -> list[Document]:
        """`{exchange_id, state, count}` of every live job, from an index alone."""
        grouped = await self._jobs.aggregate(
            [
                {"$match": {"exchange_id": {"$gt": ""}, "status": {"$in": list(LIVE)}}},
                {
                    "$group": {
                        "_id": {"exchange_id": "$exchange_id", "state": "$state"},
                        "count": {"$sum": 1},
                    }
                },
            ],
            hint="counts",
        )
        return [{**group["_id"], "count": group["count"]} for group in grouped]

    async def oldest_cursors(self, job_type: str) -> list[Document]:
        """`{exchange_id, timeframe, since_ms}`: how far the last of its active jobs has come."""
        grouped = await self._jobs.aggregate(
            [
                {"$match": {"status": Status.ACTIVE.value, "type": job_type}},
                {
                    "$group": {
                        "_id": {"exchange_id": "$exchange_id", "timeframe": "$timeframe"},
                        "since_ms": {"$min": "$cursor.since_ms"},
                    }
                },
            ]
        )
        return [{**group["_id"], "since_ms": group["since_ms"]} for group in grouped]

    async def pause(self, job_id: str | ObjectId) -> Job:
        """Stops it; a running one stops after the page in hand. Pausing twice is fine."""
        return await self._either(
            job_id, ("pause", "pause_running"), already=lambda job: job.status is Status.PAUSED
        )

    async def resume(self, job_id: str | ObjectId) -> Job:
        """Lets it run again, starting now. Resuming an active job is fine."""
        return await self._either(
            job_id, ("resume", "resume_running"), already=lambda job: job.status is Status.ACTIVE
        )

    async def run(self, job_id: str | ObjectId) -> Job:
        """Starts it now, whatever its schedule. A running job is already doing it."""
        return await self._either(job_id, ("run", "run_settled"), already=_is_running)

    async def delete(self, job_id: str | ObjectId) -> Job:
        """Soft delete; a running worker puts it down after the page in hand."""
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
        """The first of the named transitions that applies, or the job that is there already.

        Between two looks a worker may lease or settle the job. A look that finds a state from
        which a transition would now start tries again, so that nobody is refused for that.
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

    async def _move(self, job_id: str | ObjectId, transition: Transition) -> Job | None:
        fields: Document = {"wake": WAKE, "updated_at": "$$NOW"}
        if transition.state_to is not None:
            fields["state"] = transition.state_to.value
        if transition.status_to is not None:
            fields["status"] = transition.status_to.value
        if transition.state_to is State.QUEUED:
            # A fresh start on a person's word: earlier faults no longer count.
            fields |= {"next_run_at": NOW_MS, "attempt": 0, "kills": 0, "waiting_for": None}
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
    }
    return {
        "$mergeObjects": [
            {"$literal": {**given, **_UNTOUCHED}},
            {
                # An upsert names the new document itself; keep that name.
                "_id": {"$ifNull": ["$_id", "$$REMOVE"]},
                "state": {"$cond": [due, State.QUEUED.value, State.IDLE.value]},
                "next_run_at": first_run,
                "created_at": "$$NOW",
                "updated_at": "$$NOW",
            },
        ]
    }


_UNTOUCHED: Document = {
    "status": Status.ACTIVE.value,
    "fence": 0,
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
