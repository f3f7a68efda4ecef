"""Connectors and jobs as JSON: seed 004's fields, an `id`, and nothing of the machinery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.jobs.job import Job

_INSIDE = frozenset({"_id", "wake", "limiter", "circuit_changed_at", "unique_key", "kills"})


def connector_facts(connector: Connector, now_ms: int) -> dict[str, Any]:
    """The document, what each window has used now, and why nothing may be sent, if so."""
    stopped = connector.stopped(now_ms)
    usages = zip(connector.all_windows, connector.usages(now_ms), strict=True)
    return {
        **_outside(connector.document),
        "circuit": connector.circuit(now_ms).snapshot(),
        "usage": [
            {
                "unit": window.unit,
                "limit": window.limit,
                "period_ms": window.period_ms,
                "used": counted.used,
            }
            for window, counted in usages
        ],
        "stopped": None
        if stopped is None
        else {"reason": stopped.reason, "until": stop_ends(connector, now_ms)},
    }


def stop_ends(connector: Connector, now_ms: int) -> int | None:
    """When a connector that is stopped goes on by itself; None when only a person can."""
    stopped = connector.stopped(now_ms)
    if stopped is None:
        return None
    endless = stopped.reason == "paused" and connector.document.get("paused_until") is None
    return None if endless or stopped.reason == "deleted" else stopped.retry_at_ms


def job_facts(job: Job) -> dict[str, Any]:
    """The document, without its lease token: whoever knows that could pass for the worker."""
    lock = job.document.get("lock") or {}
    held = {"locked_by": lock.get("locked_by"), "lock_until": lock.get("lock_until")}
    return {"id": str(job.id), **_outside(job.document), "lock": held}


def run_facts(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in ("_id", "expire_at")}


def _outside(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _INSIDE}
