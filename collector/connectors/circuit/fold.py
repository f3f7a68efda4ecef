"""The shared circuit gate as statements: MongoDB decides, on its clock, for all workers at once.

`fold_pipeline` adds a batch of outcomes to the window in the connector's document and moves the
gate by the rules of gate.py. `probe_room` and `probing` are the gate's part in the statement that
grants tokens (grant.py): while the gate is not open they let one request through at a time, lease
it the probe's place, and make the first one after the hold the transition to HALF_OPEN.

A transition carries the nonce of the statement that made it, so that exactly one process reports
it. `circuit_changed_at` is beside `circuit` and not inside it: a change stream's filter cannot
match a part of a subdocument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.gate import DEFAULTS, SHARED_BINS
from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collector.exchanges.port import Health

Expression = Any
_LONGEST_REASON = 300

_STATE: Document = {"$ifNull": ["$circuit.state", "OPEN"]}
IS_OPEN: Document = {"$eq": [_STATE, "OPEN"]}


@dataclass(slots=True)
class Outcomes:
    """Outcomes of some requests: counts, and the verdicts of probes by their ids."""

    ok: int = 0
    err: int = 0
    probes: list[tuple[str, Health]] = field(default_factory=list)
    in_a_row: int = 0
    """Errors since the last success among these."""
    reason: str = ""
    """The last error in words."""

    def __bool__(self) -> bool:
        return bool(self.ok or self.err or self.probes)

    def add(self, health: Health, probe: str | None, reason: str = "") -> None:
        self.ok += health == "good"
        self.err += health == "bad"
        if health == "good":
            self.in_a_row, self.reason = 0, ""
        elif health == "bad":
            self.in_a_row, self.reason = self.in_a_row + 1, reason
        if probe is not None:
            self.probes.append((probe, health))

    def with_later(self, later: Outcomes) -> Outcomes:
        in_a_row = later.in_a_row if later.ok else self.in_a_row + later.in_a_row
        reason = later.reason if later.ok or later.err else self.reason
        probes = [*self.probes, *later.probes]
        return Outcomes(self.ok + later.ok, self.err + later.err, probes, in_a_row, reason)


def setting(name: str) -> Document:
    """A setting of the connector's gate, or its default."""
    return {"$ifNull": [f"$circuit.settings.{name}", getattr(DEFAULTS, name)]}


def probe_room(wanted: int, unspent: str | None) -> Expression:
    """How many of `wanted` requests the gate lets through, given that the hold is over.

    `unspent` is a probe that this process was granted and did not send: it may use that place.
    """
    free = {
        "$or": [
            {"$lte": [{"$ifNull": ["$circuit.probe.until", 0]}, "$_now"]},
            {"$eq": [{"$ifNull": ["$circuit.probe.id", ""]}, unspent or None]},
        ]
    }
    return {"$cond": [IS_OPEN, wanted, {"$cond": [free, 1, 0]}]}


def probing(nonce: str) -> Expression:
    """The fields that granting a probe changes; none while the gate is open."""
    lease_ms = {"$multiply": [1000, setting("circuit_probe_lease_sec")]}
    probe = {"id": nonce, "until": {"$add": ["$_now", lease_ms]}}
    transition = _transition(nonce, "TRIPPED", "HALF_OPEN", {"$ifNull": ["$circuit.err_rate", 0]})
    begun = {"state": "HALF_OPEN", "successes": 0, "probe": probe, "transition": transition}
    return {
        "$switch": {
            "branches": [
                {"case": IS_OPEN, "then": {}},
                {
                    "case": {"$eq": ["$circuit.state", "HALF_OPEN"]},
                    "then": {"circuit": {"$mergeObjects": ["$circuit", {"probe": probe}]}},
                },
            ],
            "default": {"circuit": {"$mergeObjects": ["$circuit", begun]}, **_noticed()},
        }
    }


def fold_pipeline(outcomes: Outcomes, nonce: str) -> list[Document]:
    """Counts the outcomes, and moves the gate if it has to.

    `_verdict` is the outcome of the probe that holds the place. Outcomes of requests that were sent
    before the gate tripped are counted, but do not move the gate while it is not open.
    """
    window_sec = setting("circuit_window_sec")
    width = {"$ceil": {"$divide": [window_sec, SHARED_BINS]}}
    second = {"$toLong": {"$floor": {"$divide": ["$_now", 1000]}}}
    live = {
        "$filter": {
            "input": {"$ifNull": ["$circuit.bins", []]},
            "cond": {"$gt": ["$$this.t", {"$subtract": ["$_bin", window_sec]}]},
        }
    }
    verdict = {
        "$first": {
            "$filter": {
                "input": [{"id": probe, "health": health} for probe, health in outcomes.probes],
                "cond": {"$eq": ["$$this.id", {"$ifNull": ["$circuit.probe.id", None]}]},
            }
        }
    }
    return [
        {"$set": {"_now": {"$max": [NOW_MS, {"$ifNull": ["$limiter.clock", 0]}]}}},
        {"$set": {"_second": second}},
        {"$set": {"_bin": {"$subtract": ["$_second", {"$mod": ["$_second", {"$toLong": width}]}]}}},
        {"$set": {"_bins": live}},
        {"$set": {"_bins": _counted(outcomes), "_verdict": verdict}},
        {
            "$set": {
                "_err": {"$sum": "$_bins.err"},
                "_events": {"$add": [{"$sum": "$_bins.ok"}, {"$sum": "$_bins.err"}]},
                "_successes": {
                    "$add": [
                        {"$ifNull": ["$circuit.successes", 0]},
                        {"$cond": [{"$eq": ["$_verdict.health", "good"]}, 1, 0]},
                    ]
                },
            }
        },
        {
            "$set": {
                "_next": _next_state(),
                "_rate": {"$cond": ["$_events", {"$divide": ["$_err", "$_events"]}, 0]},
            }
        },
        {"$replaceWith": {"$mergeObjects": ["$$ROOT", _folded(nonce, outcomes)]}},
        {"$unset": ["_now", "_second", "_bin", "_bins", "_verdict", "_err", "_events"]},
        {"$unset": ["_successes", "_next", "_rate"]},
    ]


def _counted(outcomes: Outcomes) -> Expression:
    """The live bins with the outcomes in the current one."""
    if not outcomes.ok and not outcomes.err:
        return "$_bins"
    others = {"$filter": {"input": "$_bins", "cond": {"$ne": ["$$this.t", "$_bin"]}}}
    current = {"$first": {"$filter": {"input": "$_bins", "cond": {"$eq": ["$$this.t", "$_bin"]}}}}
    grown = {
        "t": "$_bin",
        "ok": {"$add": [{"$ifNull": ["$$current.ok", 0]}, outcomes.ok]},
        "err": {"$add": [{"$ifNull": ["$$current.err", 0]}, outcomes.err]},
    }
    return {"$let": {"vars": {"current": current}, "in": {"$concatArrays": [others, [grown]]}}}


def _next_state() -> Expression:
    ratio, least = setting("circuit_max_err_rate_ratio"), setting("circuit_min_events")
    too_many = {
        "$and": [
            IS_OPEN,
            {"$gte": ["$_events", least]},
            {"$gte": ["$_err", {"$multiply": [ratio, "$_events"]}]},
        ]
    }
    probed = {"$and": [{"$eq": ["$circuit.state", "HALF_OPEN"]}, {"$gt": ["$_verdict", None]}]}
    enough = {"$gte": ["$_successes", setting("circuit_half_open_probe")]}
    good, bad = ({"$eq": ["$_verdict.health", health]} for health in ("good", "bad"))
    return {
        "$switch": {
            "branches": [
                {"case": too_many, "then": "TRIPPED"},
                {"case": {"$and": [probed, bad]}, "then": "TRIPPED"},
                {"case": {"$and": [probed, good, enough]}, "then": "OPEN"},
            ],
            "default": _STATE,
        }
    }


def _failing(outcomes: Outcomes) -> Expression:
    """How many requests have failed in a row, since when and why; null after a success.

    Whatever the gate does: an exchange that is asked seldom has too few events to trip it.
    """
    before = None if outcomes.ok else {"$ifNull": ["$circuit.failing", None]}
    if not outcomes.in_a_row:
        return before
    return {
        "count": {"$add": [{"$ifNull": ["$circuit.failing.count", 0]}, outcomes.in_a_row]}
        if before
        else outcomes.in_a_row,
        "since": {"$ifNull": ["$circuit.failing.since", "$_now"]} if before else "$_now",
        "reason": {"$literal": outcomes.reason[:_LONGEST_REASON]},
    }


def _folded(nonce: str, outcomes: Outcomes) -> Expression:
    """The fields that a batch of outcomes changes."""
    moved = {"$ne": ["$_next", _STATE]}
    opened = {"$and": [moved, {"$eq": ["$_next", "OPEN"]}]}
    tripped = {"$and": [moved, {"$eq": ["$_next", "TRIPPED"]}]}
    held_ms = {"$multiply": [1000, setting("circuit_min_closed_sec")]}
    judged = {"$gt": ["$_verdict", None]}
    circuit = {
        "state": "$_next",
        "bins": {"$cond": [opened, [], "$_bins"]},
        "err_rate": {"$cond": [opened, 0, "$_rate"]},
        "successes": {"$cond": [moved, 0, "$_successes"]},
        "failing": _failing(outcomes),
        "probe": {"$cond": [judged, None, {"$ifNull": ["$circuit.probe", None]}]},
        "tripped_until": {
            "$cond": [
                tripped,
                {"$add": ["$_now", held_ms]},
                {"$ifNull": ["$circuit.tripped_until", 0]},
            ]
        },
    }
    transition = {"transition": _transition(nonce, _STATE, "$_next", "$_rate")}
    return {
        "$mergeObjects": [
            {
                "circuit": {
                    "$mergeObjects": ["$circuit", circuit, {"$cond": [moved, transition, {}]}]
                }
            },
            # The outcome of a probe is worth another read, whether or not the gate moved.
            {"$cond": [judged, {"wake": WAKE}, {}]},
            {"$cond": [moved, _noticed(), {}]},
        ]
    }


def _transition(nonce: str, before: Expression, after: Expression, rate: Expression) -> Document:
    return {"from": before, "to": after, "err_rate": rate, "at": "$_now", "by": nonce}


def _noticed() -> Document:
    """Other fields that a transition touches, so that workers and listeners notice it at once."""
    return {"circuit_changed_at": "$_now", "wake": WAKE, "updated_at": "$$NOW"}
