"""A job and its runs as front ends show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.jobs import types
from collector.jobs.cursor import Cursor
from collector.jobs.earlier import requested_since
from collector.jobs.network import network_of
from collector.operations.job_words import advice_words, reason_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.jobs.job import Job


def shown_job(job: Job) -> dict[str, Any]:
    """Its public fields. `next_run_at`, cursors and locks are epoch ms, dates are dates."""
    document, network = job.document, network_of(job.exchange_id)
    return {
        "id": str(job.id),
        "exchange_id": job.exchange_id if network is None else None,
        "network": network,
        "type": job.type,
        "symbol": job.symbol,
        "timeframe": job.timeframe,
        "status": job.status.value,
        "state": job.state.value,
        "schedule": job.schedule.to_document(),
        "next_run_at": job.next_run_at,
        "priority": job.priority,
        "cursor": _cursor(job),
        "params": dict(job.params),
        "stats": _stats(document.get("stats") or {}),
        "lock": _lock(document.get("lock") or {}),
        "attempt": job.attempt,
        "fence": job.fence,
        "waiting_for": document.get("waiting_for"),
        "progress": document.get("progress"),
        "reason": reason_words(job) or None,
        "advice": advice_words(job),
        "requested_since": requested_since(job),
        "created_at": document["created_at"],
        "updated_at": document["updated_at"],
    }


def shown_run(document: Mapping[str, Any]) -> dict[str, Any]:
    """One turn of a job on a worker. Times are epoch ms."""
    names = ("started_at", "ended_at", "duration_ms", "outcome", "pages", "bars", "tokens")
    about = {name: document[name] for name in (*names, "error", "worker_id", "fence")}
    return {"id": str(document["_id"]), **about}


def _cursor(job: Job) -> dict[str, Any]:
    """In the shape that its type keeps; most walk through time."""
    row = types.find(job.type)
    if row is None or row.cursor is Cursor:
        return job.cursor.to_document()
    return job.cursor_as(row.cursor).to_document()


def _stats(stats: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: stats.get(name, 0) for name in ("runs", "success", "fail")}
    moments = ("last_run_at", "last_success_at", "last_error", "last_error_code", "failing_since")
    return {**counts, **{name: stats.get(name) for name in moments}}


def _lock(lock: Mapping[str, Any]) -> dict[str, Any]:
    """Without its lease token, with which one could pose as the worker."""
    return {"locked_by": lock.get("locked_by"), "lock_until": lock.get("lock_until")}
