"""The statements of leasing as data: filters and update pipelines. Pure; leasing.py sends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.jobs.lease import KILLS_BEFORE_SET_ASIDE, Lease
from collector.jobs.states import State, Status
from collector.jobs.wishes import REQUESTED_NOW
from collector.mongo.client import NOW_MS, Document
from collector.mongo.remembered_time import SET_BACK_MS

if TYPE_CHECKING:
    from collections.abc import Collection

    from collector.jobs.settlement import Settlement

LEASE_INDEX = "lease"
NEXT_DUE_INDEX = "next_due"
RUNNING_INDEX = "running"
SET_ASIDE = f"set aside: it ran alone and its worker died, {KILLS_BEFORE_SET_ASIDE} times in a row"
LEAST_REST_MS = 50
"""Shortest rest after "again", even if the schedule computes less from a wrong clock."""
URGENCY = [("priority", 1), ("next_run_at", 1)]
AGE = [("next_run_at", 1)]
_ONE_LESS: Document = {"$max": [0, {"$subtract": ["$attempt", 1]}]}
_UNLOCKED: Document = {"locked_by": None, "lock_until": None, "lease_token": None}


_SET_ASIDE_FIELDS: Document = {
    "state": State.FAILED.value,
    "status": Status.PAUSED.value,
    **REQUESTED_NOW,
    "lock": _UNLOCKED,
    "stats": {
        "$mergeObjects": [
            "$stats",
            {
                "last_error": SET_ASIDE,
                "last_error_code": "worker_died",
                "failing_since": NOW_MS,
                "fail": {"$add": ["$stats.fail", 1]},
            },
        ]
    },
}


def due_filter(exchange_id: str, types: Collection[str] | None = None) -> Document:
    """Active, of this exchange, and due on the server's clock: waiting jobs and expired leases.

    Of these `types`, or of any. The bound on `priority` looks redundant, but without it the planner
    scans the whole index when little is due.
    """
    of_types = {} if types is None else {"type": {"$in": sorted(types)}}
    return {
        "status": Status.ACTIVE.value,
        "exchange_id": exchange_id,
        "priority": {"$gte": 0},
        **of_types,
        "$expr": {"$lte": ["$next_run_at", NOW_MS]},
    }


@dataclass(frozen=True, slots=True)
class Claim:
    """Which worker claims, when it sent the claim, and how long it wants the lease."""

    worker_id: str
    token: str
    ttl_ms: int
    asked_ms: int
    """When it was sent, on the server's clock as the worker knows it."""
    troubled: bool = False
    """Whether MongoDB was away recently: then leases expired although no worker died."""

    @property
    def update(self) -> list[Document]:
        """Takes a job, or fails it when it has killed too many workers that ran it alone."""
        died = self._died()
        alone = {"$and": [died, {"$eq": ["$lock.alone", True]}]}
        kills = {"$add": [{"$ifNull": ["$kills", 0]}, {"$cond": [died, 1, 0]}]}
        kills_alone = {"$add": [{"$ifNull": ["$kills_alone", 0]}, {"$cond": [alone, 1, 0]}]}
        moved = {
            "kills": kills,
            "kills_alone": kills_alone,
            "fence": {"$add": [{"$ifNull": ["$fence", 0]}, 1]},
            "updated_at": "$$NOW",
        }
        too_often = {"$gte": [kills_alone, KILLS_BEFORE_SET_ASIDE]}
        outcome = {"$cond": [too_often, _SET_ASIDE_FIELDS, self._taken()]}
        return [{"$replaceWith": {"$mergeObjects": ["$$ROOT", moved, outcome]}}]

    def _died(self) -> Document:
        """Whether the job's last worker let its lease expire, so it is presumed dead."""
        late_ms = {"$subtract": [NOW_MS, self.asked_ms]}
        return {
            "$and": [
                not self.troubled,
                {"$eq": ["$state", State.RUNNING.value]},
                {"$ne": ["$lock.locked_by", self.worker_id]},
                # A command that took this long met a stalled server, or one whose clock was set
                # forward.
                {"$lt": [late_ms, self.ttl_ms // 3]},
            ]
        }

    def _taken(self) -> Document:
        until = {"$add": [NOW_MS, self.ttl_ms]}
        lock = {
            "locked_by": self.worker_id,
            "lock_until": until,
            "ttl_ms": self.ttl_ms,
            "lease_token": self.token,
        }
        return {
            "state": State.RUNNING.value,
            "attempt": {"$add": [{"$ifNull": ["$attempt", 0]}, 1]},
            "waiting_for": None,
            "run_again": False,
            "next_run_at": until,
            "lock": lock,
            "stats": {"$mergeObjects": ["$stats", {"last_run_at": NOW_MS}]},
        }


def held(lease: Lease) -> Document:
    """Matches the job while this lease holds it; every write of a worker uses it."""
    return {"_id": lease.job_id, "fence": lease.fence, "state": State.RUNNING.value}


def literal(fields: Document) -> Document:
    """Values as literals, so that MongoDB never reads them as expressions."""
    return {name: {"$literal": value} for name, value in fields.items()}


def settle_update(settlement: Settlement) -> list[Document]:
    """Ends a lease with the outcome of the run."""
    transition = settlement.transition
    # An operator's pause or deletion during the run wins over the run's own outcome.
    active = {"$eq": ["$status", Status.ACTIVE.value]}
    waiting = transition.state_to in (State.QUEUED, State.WAITING)
    state: Any = transition.state_to.value if transition.state_to else "$state"
    if waiting:
        state = {"$cond": [active, state, State.IDLE.value]}
    # Requested while it ran (run_now.py). A run that waits for tokens has to wait all the same.
    ends = transition.name in ("again", "retry", "done", "fail")
    once_more = {"$and": [ends, active, {"$eq": ["$run_again", True]}]}
    waiting_for = {"$cond": [once_more, None, settlement.waiting_for]}
    fields: Document = {
        "state": {"$cond": [once_more, State.QUEUED.value, state]},
        "lock": _UNLOCKED,
        "kills": 0,
        "kills_alone": 0,
        "next_run_at": {"$cond": [once_more, NOW_MS, _next_run(settlement)]},
        "next_after_run": None,
        "run_again": False,
        "attempt": _ONE_LESS if settlement.attempt is None else settlement.attempt,
        # The operation that stopped it has already stored the reason.
        "waiting_for": {"$cond": [active, waiting_for, "$waiting_for"]},
        "updated_at": "$$NOW",
    }
    if transition.status_to is not None:
        decides = {"$and": [active, {"$not": [once_more]}]}
        fields["status"] = {"$cond": [decides, transition.status_to.value, "$status"]}
        if transition.name != "vanish":
            fields |= REQUESTED_NOW
    if settlement.cursor is not None:
        fields["cursor"] = {"$literal": settlement.cursor.to_document()}
    if settlement.progress is not None:
        fields["progress"] = {"$literal": dict(settlement.progress)}
    if settlement.refusal is not None:
        fields["refused"] = _refused_since(settlement.refusal)
    elif settlement.counts_as_run:
        fields["refused"] = None
    if settlement.counts_as_run:
        fields["stats"] = {"$mergeObjects": ["$stats", _stats_after(settlement)]}
    return [{"$set": fields}]


def _next_run(settlement: Settlement) -> Document:
    """When the job is due again: as the run decided, or as it was rescheduled meanwhile."""
    if settlement.next_run_at is None:
        return {"$add": [NOW_MS, settlement.next_run_in_ms]}
    # A worker may not know yet that the clock was set back, and schedules are moved only once.
    behind = {"$subtract": [settlement.as_of_ms, NOW_MS]}
    set_back = {"$cond": [{"$gt": [behind, SET_BACK_MS]}, behind, 0]}
    at = {"$subtract": [settlement.next_run_at, set_back]}
    if settlement.transition.name != "again":
        return {"$max": [at, 0]}
    least = {"$add": [NOW_MS, LEAST_REST_MS]}
    return {"$ifNull": ["$next_after_run", {"$max": [at, least]}]}


def _refused_since(kind: str) -> Document:
    """The refusal, with the time since when it has been the same."""
    same = {"$eq": ["$refused.kind", {"$literal": kind}]}
    return {
        "kind": {"$literal": kind},
        "since": {"$cond": [same, "$refused.since", NOW_MS]},
    }


def _stats_after(settlement: Settlement) -> Document:
    counted = {"runs": {"$add": ["$stats.runs", 1]}}
    if settlement.succeeded:
        return {
            **counted,
            "success": {"$add": ["$stats.success", 1]},
            "last_success_at": NOW_MS,
            "last_error": None,
            "last_error_code": None,
            "failing_since": None,
        }
    return {
        **counted,
        "fail": {"$add": ["$stats.fail", 1]},
        "last_error": {"$literal": settlement.error},
        "last_error_code": settlement.code,
        # The first failure after progress, whatever an earlier row of them left.
        "failing_since": NOW_MS
        if settlement.attempt == 1
        else {"$ifNull": ["$stats.failing_since", NOW_MS]},
    }
