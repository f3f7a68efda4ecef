"""AcquireToken as one statement: an update pipeline that decides on the server's clock.

One `findAndModify` grants the longest prefix of the requests that wait, or changes nothing: a
denial writes no oplog entry. `$$NOW` is one value inside a command, so what the answer says about
time is exact. Windows, pause, ban and circuit are all judged here, in the statement that grants,
so they act on the very next token of every worker on every machine.

The statement is made for limits that were read before, with every figure a constant: a pipeline
that looks them up and works out bins and margins by itself costs the server twice as much. Its
filter demands that the limits are still those. When somebody changed them, nothing matches,
nothing happens, and the caller reads them again.

The stages: `_now` is the clock, never behind the last grant; `_w0`, `_w1`, ... are the windows
moved up to `_now`; `_k` is how many may go; the last stage writes all of it back, or the document
as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit_fold import probe_room, probing
from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.connector import Connector
    from collector.connectors.window import Window

Expression = Any
_LIMIT_FIELDS = (
    "rate_limit",
    "rate_limit_period_ms",
    "algorithm",
    "windows",
    "priority_reserve",
    "reserve_threshold",
)


@dataclass(frozen=True, slots=True)
class Want:
    """One request that waits for a token."""

    weight: int = 1
    priority: bool = False


def grant_filter(connector: Connector) -> Document:
    """The connector, with exactly the limits that the statement was made for."""
    limits = {name: connector.document.get(name) for name in _LIMIT_FIELDS}
    return {"exchange_id": connector.exchange_id, **limits}


def grant_pipeline(
    connector: Connector,
    wants: Sequence[Want],
    nonce: str,
    denied_before: int,
    unspent_probe: str | None = None,
) -> list[Document]:
    """Grants the longest prefix of `wants`, priority ones first in the list.

    `nonce` marks the grant, so that the answer tells ours from an earlier one.
    `denied_before` are denials since our last grant, counted here because denials write nothing.
    `unspent_probe` is a probe of the circuit gate that we were given and did not use.
    """
    sliding = connector.limits.algorithm == "sliding_window"
    windows = list(enumerate(connector.all_windows))
    moved = {
        f"_w{at}": _moved(window, {"$arrayElemAt": ["$limiter.windows", at]}, sliding)
        for at, window in windows
    }
    fits = [
        _prefix(window, f"$_w{at}.total", wants, connector.limits.reserve_threshold)
        for at, window in windows
    ]
    room = probe_room(len(wants), unspent_probe)
    granted = _granted(connector, wants, nonce, denied_before, sliding)
    return [
        {"$set": {"_now": {"$max": [NOW_MS, {"$ifNull": ["$limiter.clock", 0]}]}}},
        {"$set": moved},
        {"$set": {"_k": {"$cond": [_may_send(), {"$min": [*fits, room]}, 0]}}},
        {
            "$replaceWith": {
                "$cond": [
                    {"$gt": ["$_k", 0]},
                    {"$mergeObjects": ["$$ROOT", granted, probing(nonce)]},
                    "$$ROOT",
                ]
            }
        },
        {"$unset": ["_now", "_k", *moved]},
    ]


def answer_projection(nonce: str, wanted: int) -> Document:
    """The answer: small for a full grant; with the whole state when somebody has to wait."""
    full = {"$and": [{"$eq": ["$limiter.nonce", nonce]}, {"$eq": ["$limiter.granted", wanted]}]}
    used = {"$ifNull": ["$$this.used", 0]}
    counted = {"$add": [{"$ifNull": ["$$this.sum", 0]}, {"$ifNull": ["$$this.cur", used]}]}
    return {
        "now": "$$NOW",
        "counted": {"$map": {"input": "$limiter.windows", "in": counted}},
        **dict.fromkeys(("status", "paused_until", "blocked_until"), 1),
        "circuit": dict.fromkeys(("state", "tripped_until", "probe", "transition", "settings"), 1),
        "limiter": {
            "nonce": 1,
            "granted": 1,
            "clock": 1,
            "windows": {"$cond": [full, "$$REMOVE", "$limiter.windows"]},
        },
    }


def _moved(window: Window, stored: Expression, sliding: bool) -> Expression:
    """A window's state brought up to `_now`, with `total`: what it has used by then."""
    moved = _moved_sliding(window) if sliding else _moved_fixed(window)
    live = {"$gt": [{"$ifNull": ["$$s.reported.until", 0]}, "$_now"]}
    # What the venue says it has counted stands as long as it is fresh and more than our own.
    with_total = {
        "$mergeObjects": [
            "$$m",
            {
                "$cond": [
                    live,
                    {
                        "reported": "$$s.reported",
                        "total": {"$max": ["$$m.counted", "$$s.reported.used"]},
                    },
                    {"total": "$$m.counted"},
                ]
            },
        ]
    }
    return {
        "$let": {
            "vars": {"s": {"$ifNull": [stored, {}]}},
            "in": {"$let": {"vars": {"m": moved}, "in": with_total}},
        }
    }


def _moved_fixed(window: Window) -> Expression:
    expired = {"$lte": [{"$ifNull": ["$$s.start", 0]}, {"$subtract": ["$_now", window.period_ms]}]}
    return {
        "$cond": [
            expired,
            {"start": "$_now", "used": 0, "counted": 0},
            {"start": "$$s.start", "used": "$$s.used", "counted": "$$s.used"},
        ]
    }


def _moved_sliding(window: Window) -> Expression:
    """The current bin, the sum of those before it that still count, and those bins.

    `sum` and `cur` are kept as numbers, so that a grant inside the current bin, which is nearly
    every grant of a busy exchange, touches no array.
    """
    current = {"$subtract": ["$_now", {"$mod": ["$_now", window.bin_ms]}]}
    oldest = {"$subtract": ["$$t", window.bins * window.bin_ms]}
    just_ended = {"t": {"$ifNull": ["$$s.t", 0]}, "n": {"$ifNull": ["$$s.cur", 0]}}
    live = {
        "$filter": {
            "input": {"$concatArrays": [{"$ifNull": ["$$s.bins", []]}, [just_ended]]},
            "cond": {"$and": [{"$gte": ["$$this.t", oldest]}, {"$gt": ["$$this.n", 0]}]},
        }
    }
    stayed = {
        "t": "$$t",
        "cur": "$$s.cur",
        "sum": "$$s.sum",
        "bins": "$$s.bins",
        "counted": {"$add": ["$$s.sum", "$$s.cur"]},
    }
    advanced = {
        "t": "$$t",
        "cur": 0,
        "sum": {"$sum": "$$live.n"},
        "bins": "$$live",
        "counted": {"$sum": "$$live.n"},
    }
    return {
        "$let": {
            "vars": {"t": current},
            "in": {
                "$cond": [
                    {"$eq": ["$$s.t", "$$t"]},
                    stayed,
                    {"$let": {"vars": {"live": live}, "in": advanced}},
                ]
            },
        }
    }


def _may_send() -> Expression:
    paused_until = {"$ifNull": ["$paused_until", None]}
    pause_over = {"$and": [{"$ne": [paused_until, None]}, {"$lte": [paused_until, "$_now"]}]}
    return {
        "$and": [
            {
                "$or": [
                    {"$eq": ["$status", "active"]},
                    {"$and": [{"$eq": ["$status", "paused"]}, pause_over]},
                ]
            },
            {"$lte": [{"$ifNull": ["$blocked_until", 0]}, "$_now"]},
            {"$lte": [{"$ifNull": ["$circuit.tripped_until", 0]}, "$_now"]},
        ]
    }


def _prefix(
    window: Window, total: str, wants: Sequence[Want], reserve_threshold: float
) -> Expression:
    """How many of `wants`, from the first on, fit into a window that has used `total`."""
    costs = list(accumulate(window.cost(want.weight) for want in wants))
    priority = sum(want.priority for want in wants)
    by_priority = _fitting(costs[:priority], {"$subtract": [window.limit, total]})
    if priority == len(wants):
        return by_priority
    kept: Expression = 0
    if window.priority_reserve:
        loaded = {"$gte": [total, reserve_threshold * window.limit]}
        kept = {"$cond": [loaded, window.priority_reserve, 0]}
    by_others = _fitting(costs, {"$subtract": [window.limit, {"$add": [total, kept]}]})
    if priority == 0:
        return by_others
    return {
        "$cond": [
            {"$lt": [by_priority, priority]},
            by_priority,
            {"$max": [priority, by_others]},
        ]
    }


def _fitting(costs: list[int], room: Expression) -> Expression:
    """How many of the running totals `costs` are within `room`."""
    if costs == list(range(1, len(costs) + 1)):
        return {"$max": [0, {"$min": [len(costs), room]}]}
    return {"$size": {"$filter": {"input": costs, "cond": {"$lte": ["$$this", room]}}}}


def _granted(
    connector: Connector, wants: Sequence[Want], nonce: str, denied_before: int, sliding: bool
) -> Expression:
    """The fields that a grant of `_k` tokens changes."""
    windows = [
        _charged(window, f"$_w{at}", wants, sliding)
        for at, window in enumerate(connector.all_windows)
    ]
    # The seed's own three fields always show the current fixed window, whoever decides.
    over = {"$lte": [{"$ifNull": ["$rate_limit_reset_at", 0]}, "$_now"]}
    period_ms = connector.limits.rate_limit_period_ms
    return {
        "limiter": {"clock": "$_now", "nonce": nonce, "granted": "$_k", "windows": windows},
        "rate_limit_usage": {
            "$add": ["$_k", {"$cond": [over, 0, {"$ifNull": ["$rate_limit_usage", 0]}]}]
        },
        "rate_limit_window_start": {"$cond": [over, "$_now", "$rate_limit_window_start"]},
        "rate_limit_reset_at": {
            "$cond": [over, {"$add": ["$_now", period_ms]}, "$rate_limit_reset_at"]
        },
        "granted_total": {"$add": [{"$ifNull": ["$granted_total", 0]}, "$_k"]},
        "denied_total": {"$add": [{"$ifNull": ["$denied_total", 0]}, denied_before]},
    }


def _charged(window: Window, moved: str, wants: Sequence[Want], sliding: bool) -> Expression:
    """A window's state after `_k` requests were let through."""
    totals = [0, *accumulate(window.cost(want.weight) for want in wants)]
    cost: Expression = "$_k"
    if totals != list(range(len(totals))):
        cost = {"$arrayElemAt": [totals, "$_k"]}
    if sliding:
        state = {
            "t": f"{moved}.t",
            "cur": {"$add": [f"{moved}.cur", cost]},
            "sum": f"{moved}.sum",
            "bins": f"{moved}.bins",
        }
    else:
        state = {"start": f"{moved}.start", "used": {"$add": [f"{moved}.used", cost]}}
    reported = {
        "used": {"$add": [f"{moved}.reported.used", cost]},
        "until": f"{moved}.reported.until",
    }
    return {
        "unit": window.unit,
        "period_ms": window.period_ms,
        **state,
        # A field whose value is missing is not written.
        "reported": {"$cond": [{"$gt": [f"{moved}.reported", None]}, reported, "$$REMOVE"]},
    }
