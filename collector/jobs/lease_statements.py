"""The statements of leasing as data: filters and update pipelines. Pure; leasing.py sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.jobs.lease import KILLS_BEFORE_SET_ASIDE, Lease
from collector.jobs.states import State, Status
from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collector.jobs.settlement import Settlement

LEASE_INDEX = "lease"
NEXT_DUE_INDEX = "next_due"
RUNNING_INDEX = "running"
SET_ASIDE = f"set aside: its worker died {KILLS_BEFORE_SET_ASIDE} times in a row while running it"
URGENCY = [("priority", 1), ("next_run_at", 1)]
_UNLOCKED: Document = {"locked_by": None, "lock_until": None, "lease_token": None}


def due_filter(exchange_id: str) -> Document:
    """Active, of this exchange, and due on the server's clock: waiting jobs and expired leases.

    The bound on `priority` looks idle and is not: without it the planner walks the whole index
    when little is due.
    """
    return {
        "status": Status.ACTIVE.value,
        "exchange_id": exchange_id,
        "priority": {"$gte": 0},
        "$expr": {"$lte": ["$next_run_at", NOW_MS]},
    }


def claim_update(worker_id: str, token: str, ttl_ms: int) -> list[Document]:
    """Takes a job, or sets it aside when it has killed its worker too often."""
    rescued = {"$eq": ["$state", State.RUNNING.value]}
    kills = {"$add": [{"$ifNull": ["$kills", 0]}, {"$cond": [rescued, 1, 0]}]}
    until = {"$add": [NOW_MS, ttl_ms]}
    taken = {
        "state": State.RUNNING.value,
        "attempt": {"$add": [{"$ifNull": ["$attempt", 0]}, 1]},
        "waiting_for": None,
        "next_run_at": until,
        "lock": {"locked_by": worker_id, "lock_until": until, "lease_token": token},
        "stats": {"$mergeObjects": ["$stats", {"last_run_at": NOW_MS}]},
    }
    set_aside = {
        "state": State.FAILED.value,
        "status": Status.PAUSED.value,
        "lock": _UNLOCKED,
        "stats": {
            "$mergeObjects": [
                "$stats",
                {"last_error": SET_ASIDE, "fail": {"$add": ["$stats.fail", 1]}},
            ]
        },
    }
    moved = {
        "kills": kills,
        "fence": {"$add": [{"$ifNull": ["$fence", 0]}, 1]},
        "updated_at": "$$NOW",
    }
    too_often = {"$gte": [kills, KILLS_BEFORE_SET_ASIDE]}
    outcome = {"$cond": [too_often, set_aside, taken]}
    return [{"$replaceWith": {"$mergeObjects": ["$$ROOT", moved, outcome]}}]


def held(lease: Lease) -> Document:
    """The job, as long as it is this lease's: what every write of a worker matches."""
    return {"_id": lease.job_id, "fence": lease.fence, "state": State.RUNNING.value}


def literal(fields: Document) -> Document:
    """Values, not expressions, whatever they look like."""
    return {name: {"$literal": value} for name, value in fields.items()}


def settle_update(lease: Lease, settlement: Settlement) -> list[Document]:
    """Ends a lease with what came of the run."""
    transition = settlement.transition
    # An operator's pause or deletion that came meanwhile outlives the run's own wish.
    active = {"$eq": ["$status", Status.ACTIVE.value]}
    waiting = transition.state_to in (State.QUEUED, State.WAITING)
    state: Any = transition.state_to.value if transition.state_to else "$state"
    fields: Document = {
        "state": {"$cond": [active, state, State.IDLE.value]} if waiting else state,
        "lock": _UNLOCKED,
        "kills": 0,
        "next_run_at": settlement.next_run_at or {"$add": [NOW_MS, settlement.next_run_in_ms]},
        "attempt": lease.job.attempt - 1 if settlement.attempt is None else settlement.attempt,
        # Whoever stopped it meanwhile has said why.
        "waiting_for": {"$cond": [active, settlement.waiting_for, "$waiting_for"]},
        "updated_at": "$$NOW",
    }
    if transition.status_to is not None:
        fields["status"] = {"$cond": [active, transition.status_to.value, "$status"]}
    if settlement.cursor is not None:
        fields["cursor"] = {"$literal": settlement.cursor.to_document()}
    if settlement.counts_as_run:
        fields["stats"] = {"$mergeObjects": ["$stats", _stats_after(settlement)]}
    return [{"$set": fields}]


def _stats_after(settlement: Settlement) -> Document:
    counted = {"runs": {"$add": ["$stats.runs", 1]}}
    if settlement.succeeded:
        return {
            **counted,
            "success": {"$add": ["$stats.success", 1]},
            "last_success_at": NOW_MS,
            "last_error": None,
        }
    return {
        **counted,
        "fail": {"$add": ["$stats.fail", 1]},
        "last_error": {"$literal": settlement.error},
    }
