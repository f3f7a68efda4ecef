"""What statements on connectors write, as expressions. Pure; registry.py sends them."""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any

from collector.durations import HOUR_MS
from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collector.connectors.connector import Limits

FIRST_BLOCK_MS = 30_000
LONGEST_BLOCK_MS = HOUR_MS
BLOCK_FORGOTTEN_MS = 600_000
SHAPE_FIELDS = frozenset(
    {"rate_limit", "rate_limit_period_ms", "algorithm", "windows", "priority_reserve"}
)
"""A change of these changes how grants are counted."""
STATE_FIELDS: Document = {
    "creation_date": "$$NOW",
    "rate_limit_usage": 0,
    "rate_limit_window_start": 0,
    "rate_limit_reset_at": 0,
    "reported_usage": None,
    "blocked_until": 0,
    "blocked_reason": None,
    "granted_total": 0,
    "denied_total": 0,
    "charged_total": 0,
    "last_job_run_time": None,
    "jobs_count": 0,
    "active_jobs_count": 0,
}


def fresh_fields(exchange_id: str, limits: Limits, notes: str | None) -> Document:
    fields: Document = {
        each.name: {"$literal": getattr(limits, each.name)}
        for each in dataclass_fields(limits)
        if each.name not in ("windows", "circuit", "spacing")
    }
    return {
        **fields,
        "circuit.settings": {"$literal": asdict(limits.circuit)},
        "windows": {"$literal": [window.to_document() for window in limits.windows]},
        "spacing": {"$literal": limits.spacing and limits.spacing.to_document()},
        "exchange_id": exchange_id,
        "status": "active",
        "paused_until": None,
        "notes": {"$literal": notes},
        "updated_at": "$$NOW",
        "wake": WAKE,
    }


def shown_window() -> Document:
    """The connector's three fields of its current window, under limits that may be smaller now."""
    reset_at = {"$add": [NOW_MS, "$rate_limit_period_ms"]}
    return {
        "rate_limit_usage": {"$min": ["$rate_limit_usage", "$rate_limit"]},
        "rate_limit_reset_at": {"$min": ["$rate_limit_reset_at", reset_at]},
    }


def growing_block(first_ms: Any, forgotten_ms: Any) -> Document:
    """How long to block when an exchange demands a stop without a duration.

    Twice as long as the last time, when that ended less than `forgotten_ms` ago.
    """
    since = {"$subtract": [NOW_MS, {"$ifNull": ["$blocked_until", 0]}]}
    doubled = {"$multiply": [2, {"$ifNull": ["$blocked_for_ms", 0]}]}
    grown = {"$min": [{"$max": [doubled, first_ms]}, LONGEST_BLOCK_MS]}
    return {"$cond": [{"$lt": [since, forgotten_ms]}, grown, first_ms]}


def shortest_period_ms() -> Document:
    """The period of the connector's shortest window."""
    further = {"$ifNull": [{"$min": "$windows.period_ms"}, "$rate_limit_period_ms"]}
    return {"$min": ["$rate_limit_period_ms", further]}
