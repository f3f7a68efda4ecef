"""What statements on connectors write, as expressions. Pure; registry.py sends them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collector.connectors.connector import Limits

FIRST_BLOCK_MS = 30_000
LONGEST_BLOCK_MS = 3_600_000
BLOCK_FORGOTTEN_MS = 600_000

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
    "last_job_run_time": None,
    "jobs_count": 0,
    "active_jobs_count": 0,
}


def fresh_fields(exchange_id: str, limits: Limits, notes: str | None) -> Document:
    fields: Document = {
        name: {"$literal": value}
        for name, value in asdict(limits).items()
        if name not in ("windows", "circuit")
    }
    return {
        **fields,
        "circuit.settings": {"$literal": asdict(limits.circuit)},
        "windows": {"$literal": [window.to_document() for window in limits.windows]},
        "exchange_id": exchange_id,
        "status": "active",
        "paused_until": None,
        "notes": {"$literal": notes},
        "updated_at": "$$NOW",
        "wake": WAKE,
    }


def states_for_new_windows() -> Document:
    """The granted tokens carried over to the configured windows.

    The seed's own window keeps its state; a further one is found by unit and period, so that
    reordering never hands one window's history to another. Everything is put into bins and into
    `used`, so that neither a new bin width nor the other algorithm loses a grant.
    """
    same = {
        "$and": [
            {"$eq": ["$$this.unit", "$$c.unit"]},
            {"$eq": ["$$this.period_ms", "$$c.period_ms"]},
        ]
    }
    states = {"$ifNull": ["$limiter.windows", []]}
    further = {
        "$map": {
            "input": {"$ifNull": ["$windows", []]},
            "as": "c",
            "in": {"$ifNull": [{"$first": {"$filter": {"input": states, "cond": same}}}, {}]},
        }
    }
    current = {"$ifNull": ["$$s.cur", 0]}
    binned = [
        {"t": {"$ifNull": ["$$s.t", 0]}, "n": current},
        {"t": NOW_MS, "n": {"$ifNull": ["$$s.used", 0]}},
    ]
    carried = {
        "t": 0,
        "cur": 0,
        "sum": 0,
        "bins": {"$concatArrays": [{"$ifNull": ["$$s.bins", []]}, binned]},
        "start": {"$ifNull": ["$$s.start", NOW_MS]},
        "used": {"$ifNull": ["$$s.used", {"$add": [{"$ifNull": ["$$s.sum", 0]}, current]}]},
    }
    return {
        "$map": {
            "input": {"$concatArrays": [[{"$ifNull": [{"$first": states}, {}]}], further]},
            "as": "s",
            "in": {"$mergeObjects": ["$$s", carried]},
        }
    }


def growing_block() -> Document:
    """How long to stay away when an exchange says stop and not for how long."""
    recent = {
        "$lt": [{"$subtract": [NOW_MS, {"$ifNull": ["$blocked_until", 0]}]}, BLOCK_FORGOTTEN_MS]
    }
    doubled = {"$multiply": [2, {"$ifNull": ["$blocked_for_ms", FIRST_BLOCK_MS // 2]}]}
    return {"$cond": [recent, {"$min": [doubled, LONGEST_BLOCK_MS]}, FIRST_BLOCK_MS]}


def _at_most_now(field: str) -> Document:
    return {"$cond": [{"$gt": [field, NOW_MS]}, NOW_MS, field]}


def healed_limiter() -> Document:
    """The limiter with no grant dated after now."""
    dated_now = {
        "$map": {
            "input": {"$ifNull": ["$limiter.windows", []]},
            "as": "w",
            "in": {
                "$mergeObjects": [
                    "$$w",
                    {"t": _at_most_now("$$w.t"), "start": _at_most_now("$$w.start")},
                    {
                        "bins": {
                            "$map": {
                                "input": {"$ifNull": ["$$w.bins", []]},
                                "in": {"t": _at_most_now("$$this.t"), "n": "$$this.n"},
                            }
                        }
                    },
                ]
            },
        }
    }
    healed = {"clock": NOW_MS, "windows": dated_now}
    ahead = {"$gt": [{"$ifNull": ["$limiter.clock", 0]}, NOW_MS]}
    return {"$cond": [ahead, {"$mergeObjects": ["$limiter", healed]}, "$limiter"]}
