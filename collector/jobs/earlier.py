"""An earlier beginning for a backfill that exists.

The job starts again at the earlier time and skips what it has fetched already: that range is in
`progress.ahead`, which a run never requests again. A run under way loses its lease by the raised
fence, so that it cannot write its old cursor over the new one; its stored pages stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ReturnDocument

from collector.jobs.job import Cursor, Job
from collector.jobs.states import LIVE, SETTLED, State, Status
from collector.jobs.wishes import CHANGED
from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collector.jobs.job import JobSpec
    from collector.mongo.client import Database

_BEGUN: Document = {
    "$and": [{"$gt": ["$cursor.page", 0]}, {"$isNumber": "$progress.from_ms"}],
}
_REQUESTED: Document = {
    "$ifNull": [
        "$requested_since",
        # Jobs of programs that did not record the requested time.
        {"$cond": [_BEGUN, "$progress.from_ms", "$cursor.since_ms"]},
    ]
}
_FETCHED: Document = {
    "$cond": [
        {"$and": [_BEGUN, {"$lt": ["$progress.from_ms", "$cursor.since_ms"]}]},
        [["$progress.from_ms", "$cursor.since_ms"]],
        [],
    ]
}


def requested_since(job: Job) -> int | None:
    """Where the history of a backfill was to begin, in epoch ms; 0 is its first bar.

    None for a job of another kind, and for one of an older program that did not record it.
    """
    found = job.document.get("requested_since")
    return None if found is None else int(found)


def begins_ms(job: Job) -> int:
    """The same, with what an older program's job shows when that was not recorded."""
    known = requested_since(job)
    if known is not None:
        return known
    begun = (job.document.get("progress") or {}).get("from_ms")
    return job.cursor.since_ms if begun is None or not job.cursor.page else int(begun)


async def extend(database: Database, spec: JobSpec) -> Job | None:
    """Lets the live job of this key begin where `spec` does, if that is earlier; else None.

    A settled job runs again. A job that an operator paused stays paused.
    """
    assert isinstance(spec.cursor, Cursor)
    since_ms = spec.cursor.since_ms
    document = await database.jobs.find_one_and_update(
        {
            "unique_key": spec.unique_key,
            "status": {"$in": sorted(LIVE)},
            "$expr": {"$gt": [_REQUESTED, since_ms]},
        },
        [{"$set": _extended(since_ms)}],
        return_document=ReturnDocument.AFTER,
    )
    return None if document is None else Job.from_document(document)


def _extended(since_ms: int) -> Document:
    settled = {"$in": ["$state", sorted(SETTLED)]}
    runs = {"$or": [settled, {"$eq": ["$status", Status.ACTIVE.value]}]}
    restarted = {"since_ms": since_ms, "page": 0, "done": False}
    kept = {
        "ahead": {"$concatArrays": [{"$ifNull": ["$progress.ahead", []]}, _FETCHED]},
        "missed": {"$ifNull": ["$progress.missed", []]},
    }
    return {
        "requested_since": since_ms,
        "cursor": {"$mergeObjects": ["$cursor", restarted]},
        # An expression replaces; a plain object would be merged into what is there.
        "progress": {"$mergeObjects": [kept]},
        "state": {"$cond": [runs, State.QUEUED.value, State.IDLE.value]},
        "status": {"$cond": [runs, Status.ACTIVE.value, "$status"]},
        "waiting_for": {"$cond": [runs, None, "$waiting_for"]},
        "next_run_at": {"$cond": [runs, NOW_MS, "$next_run_at"]},
        "lock": {"locked_by": None, "lock_until": None, "lease_token": None},
        "fence": {"$add": [{"$ifNull": ["$fence", 0]}, 1]},
        "refused": None,
        **dict.fromkeys(("attempt", "kills", "kills_alone"), 0),
        **CHANGED,
    }
