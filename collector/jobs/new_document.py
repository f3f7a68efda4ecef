"""The document of a new job, as an upsert writes it."""

from __future__ import annotations

from typing import Any

from collector.jobs import types
from collector.jobs.job import Cursor, JobSpec, RecoveredJob
from collector.jobs.states import State, Status
from collector.jobs.wishes import REQUESTED_NOW, is_recorded
from collector.mongo.client import EPOCH_SECONDS, NOW_MS, Document


def is_new() -> Document:
    """In an upsert's pipeline: whether the document is being inserted."""
    return {"$eq": [{"$type": "$created_at"}, "missing"]}


def new_document(spec: JobSpec) -> Document:
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
    known = {} if spec.progress is None else {"progress": dict(spec.progress)}
    return {
        "$mergeObjects": [
            {"$literal": {**given, **_UNTOUCHED, **known}},
            {
                # An upsert names the new document itself; keep that name.
                "_id": {"$ifNull": ["$_id", "$$REMOVE"]},
                "state": {"$cond": [due, State.QUEUED.value, State.IDLE.value]},
                "next_run_at": first_run,
                "fence": _first_fence(spec),
                "created_at": "$$NOW",
                "updated_at": "$$NOW",
                **(REQUESTED_NOW if is_recorded(spec.type) else {}),
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
