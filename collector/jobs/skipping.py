"""Moves the cursors of existing jobs over what is stored already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.jobs.cursor import Cursor
from collector.jobs.states import LIVE, State, Status
from collector.jobs.wishes import CHANGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bson import ObjectId

    from collector.jobs.job import Job, JobSpec
    from collector.mongo.client import Database, Document


async def skip_stored(
    database: Database, pairs: Iterable[tuple[Job, JobSpec]]
) -> tuple[ObjectId, ...]:
    """Gives each job the cursor of its specification if that leaves less to do; returns the moved.

    A job that is running, or whose cursor has moved since it was read, is left alone.
    """
    moved = []
    for job, spec in pairs:
        if not _leaves_less(job, spec):
            continue
        result = await database.jobs.update_one(
            {
                "_id": job.id,
                "cursor": job.document["cursor"],
                "state": {"$ne": State.RUNNING.value},
                "status": {"$in": sorted(LIVE)},
            },
            [{"$set": _fields(spec)}],
        )
        if result.modified_count:
            moved.append(job.id)
    return tuple(moved)


def _leaves_less(job: Job, spec: JobSpec) -> bool:
    """Whether all that the specification still has to do is part of what the job has to do."""
    if job.state is State.RUNNING or job.cursor.done:
        return False
    if not isinstance(spec.cursor, Cursor) or spec.cursor.since_ms < job.cursor.since_ms:
        return False
    if job.cursor.until_ms is None:
        return spec.cursor.since_ms > job.cursor.since_ms
    if spec.cursor.until_ms is None or spec.cursor.until_ms > job.cursor.until_ms:
        return False
    skips_more = _ahead(_progress(spec)) not in ([], _ahead(job.document.get("progress")))
    return skips_more or spec.cursor.since_ms > job.cursor.since_ms


def _fields(spec: JobSpec) -> Document:
    fields: Document = {
        "cursor": {"$literal": spec.cursor.to_document()},
        "fence": {"$add": ["$fence", 1]},
        **CHANGED,
    }
    progress = _progress(spec)
    if progress is not None:
        known = {"$ifNull": ["$progress", {}]}
        fields["progress"] = {"$mergeObjects": [known, {"$literal": dict(progress)}]}
    if spec.cursor.done:
        fields |= {"status": Status.PAUSED.value, "state": State.SUCCESS.value}
    return fields


def _progress(spec: JobSpec) -> Mapping[str, Any] | None:
    return spec.recovered.progress if spec.recovered else None


def _ahead(progress: Mapping[str, Any] | None) -> list[Any]:
    """What a backfill has stored behind its cursor, and skips."""
    return (progress or {}).get("ahead") or []
