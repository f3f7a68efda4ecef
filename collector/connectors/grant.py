"""AcquireToken as one statement: an update pipeline that decides on the server's clock.

One `findAndModify` grants the longest prefix of the waiting requests, or changes nothing: a denial
writes no oplog entry. `$$NOW` is one value inside a command, so the times in the answer are exact.
Windows, pause, ban and circuit are all judged here, in the statement that grants, so they act on
the very next token of every worker on every machine.

The statement is made for limits that were read before, with every figure a constant: a pipeline
that looks them up and works out bins and margins by itself costs the server twice as much. Its
filter demands that the limits are still those. When they have changed, nothing matches, and the
caller reads them again.

Two things are written by a denied command, too. Requests that were late are charged again, whether
or not a token is granted. And a heavy request that has been denied for a whole period reserves the
room it needs, or lighter ones would always come before it.

A command that the server carries out late, by its own clock, changes nothing: its tokens would be
too old, or the clock was set ahead and grants that still count seem to have expired. Those are
dated forward (clock_correction.py) before the process asks again.

The stages: `_now` is the clock, never behind the last grant; `_w0`, `_w1`, ... are the windows
moved up to `_now` and charged; `_k` is how many may go; the last stage writes all of it back, or
the document as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.fold import probe_room, probing
from collector.connectors.grant_spacing import GrantSpacing
from collector.connectors.grant_window import GrantWindow, Want, saving
from collector.connectors.lateness import stored_margins
from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.connector import Connector

Expression = Any
_LIMIT_FIELDS = (
    "rate_limit",
    "rate_limit_period_ms",
    "algorithm",
    "windows",
    "priority_reserve",
    "reserve_threshold",
    "spacing",
)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a process requests from a connector with one command."""

    wants: Sequence[Want]
    """Priority ones first. The longest prefix is granted; of a connector with spacing, one."""
    nonce: str
    """Marks the grant, so that the answer can be distinguished from an earlier one."""
    denied_before: int = 0
    """Denials since our last grant, counted here because denials write nothing."""
    unspent_probe: str | None = None
    """A probe of the circuit gate that we were granted and did not use."""
    charges: Sequence[int] = ()
    """What late requests cost once more, by window."""
    charged: int = 0
    """How many of them there are."""
    latest_ms: int | None = None
    """The server's time after which the command is late; None when its clock is not known."""
    save_ms: int = 0
    """For how long to save room for the first of `wants` when it is denied; 0 for not at all."""


def grant_filter(connector: Connector) -> Document:
    """The connector, with exactly the limits that the statement was made for."""
    limits = {name: connector.document.get(name) for name in _LIMIT_FIELDS}
    margins = {
        f"limiter.windows.{at}.margin": margin for at, margin in enumerate(_margins(connector))
    }
    return {"exchange_id": connector.exchange_id, **limits, **margins}


def _margins(connector: Connector) -> list[Document | None]:
    """By window, as they are stored; None where none was measured."""
    windows = connector.all_windows
    return [*stored_margins(connector.document), *(None for _ in windows)][: len(windows)]


def grant_pipeline(connector: Connector, ask: Ask, now_ms: Expression = NOW_MS) -> list[Document]:
    """Grants the longest prefix of the wants, and charges what is to be charged."""
    limits = connector.limits
    sliding, spaced = limits.algorithm == "sliding_window", limits.spacing is not None
    charges = ask.charges or [0] * len(connector.all_windows)
    windows = [
        GrantWindow(at, window, margin, sliding, charge, spaced)
        for at, (window, margin, charge) in enumerate(
            zip(connector.all_windows, _margins(connector), charges, strict=True)
        )
    ]
    fits = [each.prefix(ask.wants, limits.reserve_threshold) for each in windows]
    limiter = _limiter_after(windows, ask)
    if limits.spacing is not None:
        want = ask.wants[0] if ask.wants else None
        spacing = GrantSpacing(limits.spacing, limits.reserve_threshold, windows, want)
        fits = [spacing.fits()]
        limiter["spaced"] = spacing.noted()
    room = probe_room(len(ask.wants), ask.unspent_probe)
    changes = _granted(connector, limiter, ask)
    granted = {"$mergeObjects": ["$$ROOT", changes, probing(ask.nonce)]}
    decided = {"$cond": [{"$gt": ["$_k", 0]}, granted, _denied(windows, ask)]}
    late = ask.latest_ms is not None and {"$gt": [now_ms, ask.latest_ms]}
    return [
        {"$set": {"_now": {"$max": [now_ms, {"$ifNull": ["$limiter.clock", 0]}]}}},
        {"$set": {each.name: each.moved() for each in windows}},
        {"$set": {"_k": {"$cond": [_may_send(), {"$min": [*fits, room]}, 0]}}},
        {"$replaceWith": {"$cond": [late, "$$ROOT", decided]}},
        {"$unset": ["_now", "_k", *(each.name for each in windows)]},
    ]


def answer_projection(nonce: str, wanted: int) -> Document:
    """The answer: small for a full grant; with the whole state when a request has to wait."""
    full = {
        "$and": [
            wanted > 0,
            {"$eq": ["$limiter.nonce", nonce]},
            {"$eq": ["$limiter.granted", wanted]},
        ]
    }
    return {
        "now": "$$NOW",
        "counted": {
            "$map": {
                "input": "$limiter.windows",
                "in": {
                    "$add": [
                        {"$ifNull": ["$$this.sum", 0]},
                        {"$ifNull": ["$$this.cur", {"$ifNull": ["$$this.used", 0]}]},
                    ]
                },
            }
        },
        "starts": {"$map": {"input": "$limiter.windows", "in": {"$ifNull": ["$$this.start", 0]}}},
        **dict.fromkeys(("status", "paused_until", "blocked_until"), 1),
        "lateness.least": 1,
        "circuit": dict.fromkeys(("state", "tripped_until", "probe", "transition", "settings"), 1),
        "limiter": {
            "nonce": 1,
            "granted": 1,
            "clock": 1,
            "saved": 1,
            "windows": {"$cond": [full, "$$REMOVE", "$limiter.windows"]},
            "spaced": {"$cond": [full, "$$REMOVE", "$limiter.spaced"]},
        },
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


def _limiter_after(windows: Sequence[GrantWindow], ask: Ask) -> Document:
    """The limiter's fields that a grant of `_k` tokens changes."""
    # Room that was reserved for a request like our first one is no longer needed.
    saved = {"$cond": [saving(ask.wants), "$limiter.saved", None]} if ask.wants else None
    return {
        "clock": "$_now",
        "nonce": ask.nonce,
        "granted": "$_k",
        "saved": saved,
        "windows": [each.charged(ask.wants) for each in windows],
    }


def _granted(connector: Connector, limiter: Document, ask: Ask) -> Document:
    """The fields that a grant of `_k` tokens changes."""
    return {
        # The states of removed windows stay (changed_limits.py).
        "limiter": {"$mergeObjects": ["$limiter", limiter]},
        **_shown_window(connector),
        "granted_total": {"$add": [{"$ifNull": ["$granted_total", 0]}, "$_k"]},
        "denied_total": {"$add": [{"$ifNull": ["$denied_total", 0]}, ask.denied_before]},
        "charged_total": {"$add": [{"$ifNull": ["$charged_total", 0]}, ask.charged]},
    }


def _shown_window(connector: Connector) -> Document:
    """The connector's three fields of its current window: grants alone, never more than the limit.

    With fixed windows it is the window that decides, which a charge may have begun.
    """
    period_ms = connector.limits.rate_limit_period_ms
    start: Expression = "$_now"
    over: Expression = {"$lte": [{"$ifNull": ["$rate_limit_reset_at", 0]}, "$_now"]}
    if connector.limits.algorithm == "fixed_window":
        start = "$_w0.start"
        over = {"$ne": ["$rate_limit_window_start", start]}
    counted = {"$cond": [over, 0, {"$ifNull": ["$rate_limit_usage", 0]}]}
    reset_at = {"$cond": [over, {"$add": [start, period_ms]}, "$rate_limit_reset_at"]}
    return {
        "rate_limit_usage": {"$add": ["$_k", counted]},
        "rate_limit_window_start": {"$cond": [over, start, "$rate_limit_window_start"]},
        "rate_limit_reset_at": reset_at,
    }


def _denied(windows: Sequence[GrantWindow], ask: Ask) -> Expression:
    """What a command that grants nothing writes: charges, reserved room, or nothing."""
    changes: list[Expression] = []
    if any(each.charge for each in windows):
        changes.append(
            {
                "clock": "$_now",
                "nonce": ask.nonce,
                "granted": 0,
                "windows": [each.charged() for each in windows],
            }
        )
    if ask.save_ms and ask.wants:
        mine = {
            "weight": ask.wants[0].weight,
            "until": {"$add": ["$_now", ask.save_ms]},
        }
        changes.append({"$cond": [saving(ask.wants), {}, {"saved": mine}]})
    if not changes:
        return "$$ROOT"
    charged_total = {"$add": [{"$ifNull": ["$charged_total", 0]}, ask.charged]}
    limiter = {"$mergeObjects": ["$limiter", *changes]}
    return {"$mergeObjects": ["$$ROOT", {"limiter": limiter, "charged_total": charged_total}]}
