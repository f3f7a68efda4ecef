"""What is corrected in connectors when the database's clock was set. Pure.

**Set back.** Everything here was dated by that clock while it was ahead. A grant that is dated in
the future would count until that future is over, and a block would last as long. So grants that are
dated after now are dated back by as much as the last one is ahead, which makes none of them look
older than it is, and no block, trip, report or session lease reaches further than its own term from
now. That needs no memory of the step: each field shows by itself that it is too far ahead, and
correcting it twice changes nothing.

A pause with an end is left alone, because the operator named a date and not a duration.

**Set ahead.** Grants that still count seem to be older than they are, by as much as the clock was
set ahead, and would stop counting too early. They are dated forward, and so are the ends of bans
and trips. Every process that has noticed the step asks for it, and the first one is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.fold import setting
from collector.mongo.client import NOW_MS, WAKE, Document
from collector.mongo.remembered_time import SET_BACK_MS, at_most_from_now

if TYPE_CHECKING:
    from collections.abc import Callable

Expression = Any


def correction(exchange_id: str | None = None) -> tuple[Document, list[Document]]:
    """A filter for connectors that are dated too far ahead, and the update that corrects them."""
    clock_ahead = {"$gt": ["$limiter.clock", {"$add": [NOW_MS, SET_BACK_MS]}]}
    too_far = [
        {"$gt": [f"${name}", {"$add": [NOW_MS, term, SET_BACK_MS]}]}
        for name, term in _TERMS.items()
    ]
    chosen: Document = {"$expr": {"$or": [clock_ahead, *too_far]}}
    if exchange_id is not None:
        chosen["exchange_id"] = exchange_id
    shortened = {name: at_most_from_now(name, term) for name, term in _TERMS.items()}
    fields = {
        "blocked_until": shortened["blocked_until"],
        "rate_limit_reset_at": shortened["rate_limit_reset_at"],
        "circuit": _changed(
            "$circuit",
            tripped_until=shortened["circuit.tripped_until"],
            probe=_changed("$circuit.probe", until=shortened["circuit.probe.until"]),
            bins={"$filter": {"input": "$circuit.bins", "cond": {"$lte": ["$$this.t", _NOW_SEC]}}},
        ),
        "session": _changed(
            "$session",
            lease_until=shortened["session.lease_until"],
            free_at=shortened["session.free_at"],
        ),
        "limiter": _corrected_limiter(),
        "lateness": _changed(
            "$lateness",
            chosen_at=_at_most_now("$lateness.chosen_at"),
            histogram=_changed(
                "$lateness.histogram", since=_at_most_now("$lateness.histogram.since")
            ),
            least=_changed("$lateness.least", since=_at_most_now("$lateness.least.since")),
        ),
        "wake": WAKE,
    }
    return chosen, [{"$set": fields}]


def date_forward(exchange_id: str, by_ms: int, since_ms: int) -> tuple[Document, list[Document]]:
    """A filter and an update that date everything forward, unless that was done after `since_ms`.

    That is when the process that asks for it last saw the connector.
    """
    limiter = {
        "ahead_at": NOW_MS,
        "windows": _redated("$limiter.windows", lambda date: {"$add": [date, by_ms]}),
        "spaced": _respaced(lambda date: _at_most_now({"$add": [date, by_ms]})),
    }
    fields = {
        "limiter": {"$mergeObjects": ["$limiter", limiter]},
        "blocked_until": _lasting("blocked_until", by_ms),
        "circuit": _changed("$circuit", tripped_until=_lasting("circuit.tripped_until", by_ms)),
        "wake": WAKE,
    }
    done_ms = {"$ifNull": ["$limiter.ahead_at", 0]}
    chosen = {"exchange_id": exchange_id, "$expr": {"$lte": [done_ms, since_ms]}}
    return chosen, [{"$set": fields}]


def _lasting(field: str, by_ms: int) -> Document:
    """The end of a ban or a trip that was not over yet by the clock as it was before."""
    later = {"$add": [f"${field}", by_ms]}
    lasts = {"$gt": [f"${field}", {"$subtract": [NOW_MS, by_ms]}]}
    return {"$cond": [lasts, later, f"${field}"]}


_NOW_SEC: Document = {"$divide": [NOW_MS, 1000]}
_TERMS: dict[str, Document] = {
    "blocked_until": {"$ifNull": ["$blocked_for_ms", 0]},
    "rate_limit_reset_at": {"$ifNull": ["$rate_limit_period_ms", 0]},
    "circuit.tripped_until": {"$multiply": [1000, setting("circuit_min_closed_sec")]},
    "circuit.probe.until": {"$multiply": [1000, setting("circuit_probe_lease_sec")]},
    "session.lease_until": {"$ifNull": ["$session.lease_ms", 0]},
    "session.free_at": {"$ifNull": ["$session.free_ms", 0]},
}
"""Fields that hold a date in the future, and how far ahead of now each may be."""


def _changed(document: str, **fields: Expression) -> Document:
    """The subdocument with these fields changed; what is null or missing stays so."""
    changed = {"$mergeObjects": [document, fields]}
    return {"$cond": [{"$gt": [document, None]}, changed, document]}


def _corrected_limiter() -> Document:
    """The limiter with no grant dated after now; unchanged when its clock is not ahead."""
    clock = {"$ifNull": ["$limiter.clock", 0]}
    ahead_ms = {"$subtract": [clock, NOW_MS]}

    def earlier(date: Expression) -> Expression:
        return {"$cond": [{"$gt": [date, NOW_MS]}, {"$subtract": [date, ahead_ms]}, date]}

    corrected = {
        "clock": NOW_MS,
        "ahead_at": _at_most_now("$limiter.ahead_at"),
        "windows": _redated("$limiter.windows", earlier),
        "spaced": _respaced(_at_most_now),
        "saved": None,
    }
    return {
        "$cond": [
            {"$gt": [clock, NOW_MS]},
            {"$mergeObjects": ["$limiter", corrected]},
            "$limiter",
        ]
    }


def _redated(windows: str, date: Callable[[Expression], Expression]) -> Document:
    """The states of windows with their grants dated anew, at the latest now.

    A bin begins where bins of its window begin, no earlier than its new date: it never expires
    before the grants in it.
    """

    def bin_start(start: str) -> Document:
        width = {"$ifNull": ["$$w.w", 1]}
        latest = {"$add": [date(start), {"$subtract": [width, 1]}]}
        begun = _at_most_now({"$subtract": [latest, {"$mod": [latest, width]}]})
        return {"$cond": [{"$gt": [start, None]}, begun, "$$REMOVE"]}

    period_ms = {"$ifNull": ["$$w.period_ms", 0]}

    def end(field: str, term_ms: Expression) -> Document:
        return {"$min": [{"$max": [field, date(field)]}, {"$add": [NOW_MS, term_ms]}]}

    bins = {
        "$map": {
            "input": {"$ifNull": ["$$w.bins", []]},
            "in": {"$mergeObjects": ["$$this", {"t": bin_start("$$this.t")}]},
        }
    }
    reported: Document = {"until": end("$$w.reported.until", period_ms), "at": 0}
    granted_ms = "$$w.margin.granted_ms"
    margin = {"settles_at": end("$$w.margin.settles_at", {"$add": [period_ms, granted_ms]})}
    dated = {
        "t": bin_start("$$w.t"),
        "start": bin_start("$$w.start"),
        "bins": bins,
        "reported": _changed("$$w.reported", **reported),
        "margin": _changed("$$w.margin", **margin),
    }
    return {
        "$map": {
            "input": {"$ifNull": [windows, []]},
            "as": "w",
            "in": {"$mergeObjects": ["$$w", dated]},
        }
    }


def _respaced(date: Callable[[Expression], Expression]) -> Document:
    return {
        "$map": {
            "input": {"$ifNull": ["$limiter.spaced", []]},
            "in": {"k": "$$this.k", "t": date("$$this.t")},
        }
    }


def _at_most_now(date: Expression) -> Document:
    return {"$cond": [{"$gt": [date, NOW_MS]}, NOW_MS, date]}
