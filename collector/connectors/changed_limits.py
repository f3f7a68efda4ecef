"""The limiter's state under changed limits: what was granted keeps counting. Pure.

An exchange does not forget requests because an operator edits a window. So each configured window
takes over the state of a window of the same unit: the one of the same period when it is configured
now, else the one of the longest period, because it knows most. The state carries the window's
margin, so that a request is judged by the margin under which it was granted.

The state of a window that was removed stays in `limiter.left` until its counts have expired, in
case the window is put back. What was granted meanwhile is added from the longest window of the same
unit that stayed, if there is one.

Repeating a change loses nothing and counts nothing twice. What a sliding window counted keeps its
date, the end of its bin because bins may be wider now; the other algorithm counts all of it as of
now.
"""

from __future__ import annotations

from typing import Any

from collector.mongo.client import NOW_MS, Document

Expression = Any

_LONGEST_MARGIN = 1.25
"""A period and its largest margin, in periods: how long a grant counts at the most."""

_STATES: Expression = {"$ifNull": ["$limiter.windows", []]}
_LEFT: Expression = {
    "$filter": {
        "input": {"$ifNull": ["$limiter.left", []]},
        "cond": {"$gt": ["$$this.until", NOW_MS]},
    }
}
_CONFIGURED: Expression = {
    "$concatArrays": [
        [{"unit": "requests", "period_ms": "$rate_limit_period_ms"}],
        {"$ifNull": ["$windows", []]},
    ]
}


def under_new_limits() -> Document:
    """The fields of the limiter, for the limits that the document has by now."""
    is_sliding = {"$ne": [{"$ifNull": ["$algorithm", "sliding_window"]}, "fixed_window"]}
    taken_over = {"$cond": [is_sliding, _as_sliding(), _as_fixed()]}
    configured = {"unit": "$$c.unit", "period_ms": "$$c.period_ms"}
    known = {"$gt": ["$$s", None]}
    windows = {
        "$map": {
            "input": _CONFIGURED,
            "as": "c",
            "in": {
                "$let": {
                    "vars": {"s": _taken_over()},
                    "in": {"$cond": [known, {"$mergeObjects": [taken_over, configured]}, {}]},
                }
            },
        }
    }
    return {"limiter.windows": windows, "limiter.left": _left_over()}


def _taken_over() -> Expression:
    """The state that the configured window `c` takes over, or null."""
    same_unit = {"$eq": ["$$this.unit", "$$c.unit"]}
    same_period = {"$eq": ["$$this.period_ms", "$$c.period_ms"]}
    longest = {"$eq": ["$$this.period_ms", {"$max": "$$all.period_ms"}]}

    def first(states: Expression, cond: Expression) -> Expression:
        return {"$first": {"$filter": {"input": states, "cond": cond}}}

    # What a window that stayed has counted since this one was removed.
    since = {
        "$filter": {
            "input": _dated("$$stayed"),
            "cond": {"$gte": ["$$this.t", "$$found.left_at"]},
        }
    }
    more = {"$cond": [{"$gt": ["$$stayed.bins", None]}, since, []]}
    was_removed = {"$gt": ["$$found.left_at", None]}
    completed = {"$cond": [was_removed, {"$mergeObjects": ["$$found", {"more": more}]}, "$$found"]}
    return {
        "$let": {
            "vars": {
                "live": {"$filter": {"input": _STATES, "cond": same_unit}},
                "left": {"$filter": {"input": _LEFT, "cond": same_unit}},
            },
            "in": {
                "$let": {
                    "vars": {"all": {"$concatArrays": ["$$live", "$$left"]}},
                    "in": {
                        "$let": {
                            "vars": {
                                "found": {
                                    "$ifNull": [
                                        first("$$live", same_period),
                                        first("$$all", longest),
                                        None,
                                    ]
                                },
                                "stayed": first(
                                    "$$live",
                                    {"$eq": ["$$this.period_ms", {"$max": "$$live.period_ms"}]},
                                ),
                            },
                            "in": completed,
                        }
                    },
                }
            },
        }
    }


def _left_over() -> Expression:
    """The states that no configured window has taken over, until they have expired."""
    taken = {"$map": {"input": _CONFIGURED, "as": "c", "in": _name_of(_taken_over())}}
    not_taken = {
        "$not": [{"$in": [{"unit": "$$this.unit", "period_ms": "$$this.period_ms"}, taken]}]
    }
    counts = {"$gt": ["$$this.unit", None]}
    until = {"$add": [NOW_MS, {"$multiply": [_LONGEST_MARGIN, "$$this.period_ms"]}]}
    removed = {
        "$map": {
            "input": {"$filter": {"input": _STATES, "cond": counts}},
            "in": {"$mergeObjects": ["$$this", {"left_at": NOW_MS, "until": until}]},
        }
    }
    states = {"$concatArrays": [removed, _LEFT]}
    return {"$filter": {"input": states, "cond": not_taken}}


def _name_of(state: Expression) -> Expression:
    named = {"unit": "$$taken.unit", "period_ms": "$$taken.period_ms"}
    return {"$let": {"vars": {"taken": state}, "in": named}}


def _counted_bins(state: str) -> Expression:
    current = {
        "t": f"{state}.t",
        "n": f"{state}.cur",
        "p": {"$ifNull": [f"{state}.pcur", 0]},
    }
    return {"$concatArrays": [{"$ifNull": [f"{state}.bins", []]}, [current]]}


def _dated(state: str) -> Expression:
    """The bins of a sliding window, each dated at its end."""
    width = {"$subtract": [{"$ifNull": [f"{state}.w", 1]}, 1]}
    end = {"t": {"$add": ["$$b.t", width]}}
    merged = {"$mergeObjects": ["$$b", end]}
    return {"$map": {"input": _counted_bins(state), "as": "b", "in": merged}}


_WAS_SLIDING: Document = {"$eq": [{"$type": "$$s.start"}, "missing"]}
_KEPT_OF_A_STATE: Document = {
    "margin": {"$ifNull": ["$$s.margin", "$$REMOVE"]},
    "reported": {"$ifNull": ["$$s.reported", "$$REMOVE"]},
}


def _as_sliding() -> Expression:
    dated = {"$concatArrays": [_dated("$$s"), {"$ifNull": ["$$s.more", []]}]}
    all_now = [{"t": NOW_MS, "n": "$$s.used", "p": {"$ifNull": ["$$s.pcur", 0]}}]
    bins = {"$cond": [_WAS_SLIDING, dated, all_now]}
    empty = {"t": 0, "w": 1, "cur": 0, "pcur": 0, "sum": 0, "psum": 0, "k": 0}
    return {"$mergeObjects": [_KEPT_OF_A_STATE, empty, {"bins": bins}]}


def _as_fixed() -> Expression:
    bins = _counted_bins("$$s")
    used = {"$sum": {"$map": {"input": bins, "in": {"$ifNull": ["$$this.n", 0]}}}}
    by_priority = {"$sum": {"$map": {"input": bins, "in": {"$ifNull": ["$$this.p", 0]}}}}
    begun = {"start": NOW_MS, "used": used, "pcur": by_priority}
    going_on = {"start": "$$s.start", "used": "$$s.used", "pcur": {"$ifNull": ["$$s.pcur", 0]}}
    return {"$mergeObjects": [_KEPT_OF_A_STATE, {"$cond": [_WAS_SLIDING, begun, going_on]}]}
