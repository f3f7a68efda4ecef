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
SET_BACK_MS = 2_000
"""Primaries' clocks may differ by less; a limiter's clock further ahead means it was set back."""

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


def states_for_new_windows() -> Document:
    """The granted tokens carried over to the configured windows and algorithm.

    The connector's own window keeps its state; a further one is found by unit and period, so that
    reordering never hands one window's history to another. Repeating this loses nothing and counts
    nothing twice: what a sliding window counted keeps its date, the end of its bin because bins may
    be wider now; the other algorithm counts all of it as of now.
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
    sliding = {"$ne": [{"$ifNull": ["$algorithm", "sliding_window"]}, "fixed_window"]}
    return {
        "$map": {
            "input": {"$concatArrays": [[{"$ifNull": [{"$first": states}, {}]}], further]},
            "as": "s",
            "in": {"$cond": [sliding, _as_sliding(), _as_fixed()]},
        }
    }


_COUNTED_BINS: Document = {
    "$concatArrays": [
        {"$ifNull": ["$$s.bins", []]},
        [{"t": "$$s.t", "n": "$$s.cur", "p": {"$ifNull": ["$$s.pcur", 0]}}],
    ]
}
_WAS_SLIDING: Document = {"$eq": [{"$type": "$$s.start"}, "missing"]}
_KEPT_OF_A_STATE: Document = {
    "unit": "$$s.unit",
    "period_ms": "$$s.period_ms",
    "reported": {"$ifNull": ["$$s.reported", "$$REMOVE"]},
}


def _as_sliding() -> Document:
    late = {"$subtract": [{"$ifNull": ["$$s.w", 1]}, 1]}
    dated = {
        "$map": {
            "input": _COUNTED_BINS,
            "as": "b",
            "in": {"$mergeObjects": ["$$b", {"t": {"$add": ["$$b.t", late]}}]},
        }
    }
    all_now = [{"t": NOW_MS, "n": "$$s.used", "p": {"$ifNull": ["$$s.pcur", 0]}}]
    bins = {"$cond": [_WAS_SLIDING, dated, all_now]}
    empty = {"t": 0, "w": 1, "cur": 0, "pcur": 0, "sum": 0, "psum": 0, "k": 0}
    known = {"$ne": [{"$type": {"$ifNull": ["$$s.cur", "$$s.used"]}}, "missing"]}
    return {
        "$cond": [known, {"$mergeObjects": [_KEPT_OF_A_STATE, empty, {"bins": bins}]}, {}],
    }


def _as_fixed() -> Document:
    used = {"$sum": {"$map": {"input": _COUNTED_BINS, "in": {"$ifNull": ["$$this.n", 0]}}}}
    by_priority = {"$sum": {"$map": {"input": _COUNTED_BINS, "in": {"$ifNull": ["$$this.p", 0]}}}}
    begun = {"start": NOW_MS, "used": used, "pcur": by_priority}
    going_on = {"start": "$$s.start", "used": "$$s.used", "pcur": {"$ifNull": ["$$s.pcur", 0]}}
    return {"$mergeObjects": [_KEPT_OF_A_STATE, {"$cond": [_WAS_SLIDING, begun, going_on]}]}


def under_new_limits() -> Document:
    """The limiter's state under other limits. Margins are chosen again."""
    return {
        "limiter.windows": states_for_new_windows(),
        "lateness.margins": None,
        "lateness.chosen_at": 0,
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


def brought_forward() -> Document:
    """The ends of pauses, bans and trips, earlier by what the clock was set back."""
    by_ms = {"$subtract": ["$limiter.clock", NOW_MS]}

    def sooner(field: str) -> Document:
        ahead = {"$gt": [field, NOW_MS]}
        return {"$cond": [ahead, {"$subtract": [field, by_ms]}, field]}

    names = ("blocked_until", "paused_until", "circuit.tripped_until", "rate_limit_reset_at")
    return {name: sooner(f"${name}") for name in names}


def healing(exchange_id: str | None = None) -> tuple[Document, list[Document]]:
    """A filter and an update: limiters whose clock is ahead, and how to correct them."""
    ahead = {"$expr": {"$gt": ["$limiter.clock", {"$add": [NOW_MS, SET_BACK_MS]}]}}
    chosen = ahead if exchange_id is None else {"exchange_id": exchange_id, **ahead}
    healed = {**brought_forward(), "limiter": healed_limiter(), "wake": WAKE}
    return chosen, [{"$set": healed}]


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
                                "in": {
                                    "$mergeObjects": [
                                        "$$this",
                                        {"t": _at_most_now("$$this.t")},
                                    ]
                                },
                            }
                        }
                    },
                ]
            },
        }
    }
    spaced = {
        "$map": {
            "input": {"$ifNull": ["$limiter.spaced", []]},
            "in": {"k": "$$this.k", "t": _at_most_now("$$this.t")},
        }
    }
    healed = {"clock": NOW_MS, "windows": dated_now, "spaced": spaced}
    ahead = {"$gt": [{"$ifNull": ["$limiter.clock", 0]}, NOW_MS]}
    return {"$cond": [ahead, {"$mergeObjects": ["$limiter", healed]}, "$limiter"]}
