"""Connectors and jobs as JSON: their public fields, an `id`, and no internals."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collector.connectors.history_budget import history_budget
from collector.connectors.session_lease import shown_session
from collector.jobs.network import network_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.jobs.job import Job

_INSIDE = frozenset(
    {"_id", "wake", "limiter", "budget", "declared", "circuit_changed_at", "unique_key", "kills"}
)


def connector_facts(connector: Connector, now_ms: int) -> dict[str, Any]:
    """The document, what each window has used now, and why nothing may be sent, if so."""
    stopped = connector.stopped(now_ms)
    usages = zip(connector.all_windows, connector.usages(now_ms), strict=True)
    session = shown_session(connector, now_ms)
    return {
        **_outside(connector.document),
        "session": None if session is None else asdict(session),
        "circuit": connector.circuit(now_ms).snapshot(),
        "history_budget": history_budget(connector, now_ms),
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
    """When a stopped connector continues by itself; None when only an operator can resume it."""
    stopped = connector.stopped(now_ms)
    if stopped is None:
        return None
    endless = stopped.reason == "paused" and connector.document.get("paused_until") is None
    return None if endless or stopped.reason == "deleted" else stopped.retry_at_ms


def job_facts(job: Job) -> dict[str, Any]:
    """The document, without its lease token, with which one could pose as the worker."""
    lock = job.document.get("lock") or {}
    held = {"locked_by": lock.get("locked_by"), "lock_until": lock.get("lock_until")}
    network = network_of(job.exchange_id)
    whose = {"exchange_id": job.exchange_id if network is None else None, "network": network}
    return {"id": str(job.id), **_outside(job.document), **whose, "lock": held}


def run_facts(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in ("_id", "expire_at")}


def _outside(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _INSIDE}
