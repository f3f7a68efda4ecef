"""What is corrected in connectors when the database's clock was set back. Pure.

Everything here was dated by that clock while it was ahead. A grant that is dated in the future
would count until that future is over, and a block would last as long. So no grant is dated after
now, and no block, trip, report or session lease reaches further than its own term from now. That
needs no memory of the step: each field shows by itself that it is too far ahead, and correcting it
twice changes nothing.

A pause with an end is left alone, because the operator named a date and not a duration.
"""

from __future__ import annotations

from collector.connectors.circuit.fold import setting
from collector.mongo.client import NOW_MS, WAKE, Document
from collector.mongo.remembered_time import SET_BACK_MS, at_most_from_now


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
            "circuit",
            tripped_until=shortened["circuit.tripped_until"],
            probe=_changed("circuit.probe", until=shortened["circuit.probe.until"]),
            bins={"$filter": {"input": "$circuit.bins", "cond": {"$lte": ["$$this.t", _NOW_SEC]}}},
        ),
        "session": _changed(
            "session",
            lease_until=shortened["session.lease_until"],
            free_at=shortened["session.free_at"],
        ),
        "limiter": _corrected_limiter(),
        "wake": WAKE,
    }
    return chosen, [{"$set": fields}]


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


def _changed(name: str, **fields: Document) -> Document:
    """The subdocument with these fields changed; what is null or missing stays so."""
    changed = {"$mergeObjects": [f"${name}", fields]}
    return {"$cond": [{"$gt": [f"${name}", None]}, changed, f"${name}"]}


def _corrected_limiter() -> Document:
    """The limiter with no grant dated after now; unchanged when its clock is not ahead."""
    ended = {"$add": [NOW_MS, {"$ifNull": ["$$w.period_ms", 0]}]}
    bins = {
        "$map": {
            "input": {"$ifNull": ["$$w.bins", []]},
            "in": {"$mergeObjects": ["$$this", {"t": _at_most_now("$$this.t")}]},
        }
    }
    until = {"$min": ["$$w.reported.until", ended]}
    reported = {
        "$cond": [
            {"$gt": ["$$w.reported", None]},
            {"$mergeObjects": ["$$w.reported", {"until": until, "at": 0}]},
            "$$REMOVE",
        ]
    }
    dated = {
        "t": _at_most_now("$$w.t"),
        "start": _at_most_now("$$w.start"),
        "bins": bins,
        "reported": reported,
    }
    windows = {
        "$map": {
            "input": {"$ifNull": ["$limiter.windows", []]},
            "as": "w",
            "in": {"$mergeObjects": ["$$w", dated]},
        }
    }
    spaced = {
        "$map": {
            "input": {"$ifNull": ["$limiter.spaced", []]},
            "in": {"k": "$$this.k", "t": _at_most_now("$$this.t")},
        }
    }
    corrected = {"clock": NOW_MS, "windows": windows, "spaced": spaced, "saved": None}
    ahead = {"$gt": [{"$ifNull": ["$limiter.clock", 0]}, NOW_MS]}
    return {"$cond": [ahead, {"$mergeObjects": ["$limiter", corrected]}, "$limiter"]}


def _at_most_now(field: str) -> Document:
    return {"$cond": [{"$gt": [field, NOW_MS]}, NOW_MS, field]}
