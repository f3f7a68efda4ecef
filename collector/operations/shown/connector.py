"""A connector as front ends show it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collector.connectors.history_budget import history_budget
from collector.connectors.session_lease import shown_session

if TYPE_CHECKING:
    from collector.connectors.connector import Connector
    from collector.exchanges.quirks.spacing import Spacing


def shown_connector(connector: Connector, now_ms: int) -> dict[str, Any]:
    """As it is at `now_ms`: what has run out since the last write is shown as over.

    Windows and pauses are epoch ms, dates are dates.
    """
    document, limits = connector.document, connector.limits
    paused_until = document.get("paused_until")
    pause_over = paused_until is not None and paused_until <= now_ms
    blocked_until = document.get("blocked_until") or 0
    blocked = blocked_until > now_ms
    status = "active" if connector.status == "paused" and pause_over else connector.status
    circuit, session = shown_circuit(connector, now_ms), shown_session(connector, now_ms)
    return {
        "exchange_id": connector.exchange_id,
        "creation_date": connector.creation_date,
        "status": status,
        "notes": document.get("notes"),
        "rate_limit": limits.rate_limit,
        "rate_limit_period_ms": limits.rate_limit_period_ms,
        "algorithm": limits.algorithm,
        "windows": [window.to_document() for window in limits.windows],
        "max_concurrent_jobs": limits.max_concurrent_jobs,
        "priority_reserve": limits.priority_reserve,
        "reserve_threshold": limits.reserve_threshold,
        "spacing": None if limits.spacing is None else _spacing(limits.spacing),
        "history_budget": history_budget(connector, now_ms),
        "rate_limit_usage": usage_now(connector, now_ms),
        "rate_limit_window_start": document.get("rate_limit_window_start") or 0,
        "rate_limit_reset_at": document.get("rate_limit_reset_at") or 0,
        "usage": _usage(connector, now_ms),
        "budgets": _budgets(connector, now_ms),
        "reported_usage": document.get("reported_usage"),
        "paused_until": None if pause_over else paused_until,
        "blocked_until": blocked_until if blocked else None,
        "blocked_reason": document.get("blocked_reason") if blocked else None,
        "blocked": blocked,
        "stopped": blocked or status != "active" or circuit["state"] == "TRIPPED",
        "stop": _stop(connector, now_ms),
        "circuit": circuit,
        "session": None if session is None else asdict(session),
        "cadence": document.get("cadence"),
        "granted_total": document.get("granted_total") or 0,
        "denied_total": document.get("denied_total") or 0,
        "charged_total": document.get("charged_total") or 0,
        "last_job_run_time": document.get("last_job_run_time"),
        "jobs_count": document.get("jobs_count") or 0,
        "active_jobs_count": document.get("active_jobs_count") or 0,
        "updated_at": document["updated_at"],
    }


def shown_circuit(connector: Connector, now_ms: int) -> dict[str, Any]:
    """The circuit gate: its snapshot, when a trip ends, and its settings."""
    tripped_until = (connector.document.get("circuit") or {}).get("tripped_until") or 0
    return {
        **connector.circuit(now_ms).snapshot(),
        "tripped_until": tripped_until if tripped_until > now_ms else None,
        "settings": asdict(connector.limits.circuit),
    }


def usage_now(connector: Connector, now_ms: int) -> int:
    """The tokens granted in the window that is open; a window that has ended counts nothing."""
    open_still = (connector.document.get("rate_limit_reset_at") or 0) > now_ms
    return int(connector.document.get("rate_limit_usage") or 0) if open_still else 0


def _usage(connector: Connector, now_ms: int) -> list[dict[str, Any]]:
    """What each window has used now."""
    return [
        {
            "unit": window.unit,
            "limit": window.limit,
            "period_ms": window.period_ms,
            "used": counted.used,
        }
        for window, counted in zip(connector.all_windows, connector.usages(now_ms), strict=True)
    ]


def _budgets(connector: Connector, now_ms: int) -> list[dict[str, Any]]:
    """The same with when it is free again, the fullest first: it is the one that limits."""
    ends = [
        max((at for at, _ in counted.drains), default=None) for counted in connector.usages(now_ms)
    ]
    found = [
        {**used, "resets_at": at} for used, at in zip(_usage(connector, now_ms), ends, strict=True)
    ]
    return sorted(found, key=lambda each: -each["used"] / each["limit"])


def _stop(connector: Connector, now_ms: int) -> dict[str, Any] | None:
    """Why nothing is sent, and when that ends; None for `until` when only an operator can end it.

    None when requests may be sent.
    """
    stopped = connector.stopped(now_ms)
    if stopped is None:
        return None
    endless = stopped.reason == "paused" and connector.document.get("paused_until") is None
    ends = None if endless or stopped.reason == "deleted" else stopped.retry_at_ms
    return {"reason": stopped.reason, "until": ends}


def _spacing(spacing: Spacing) -> dict[str, Any]:
    return {
        "min_interval_ms": dict(spacing.intervals_ms),
        "priority_targets": sorted(spacing.first),
        "min_interval_threshold": spacing.threshold,
        "warn_threshold": spacing.warn,
        "critical_threshold": spacing.critical,
    }
