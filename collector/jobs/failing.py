"""Jobs that keep failing: those that wait for an operator, and those that are tried in vain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.jobs.listing import BY_STATE
from collector.jobs.states import LIVE, State, Status

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

FAILING_INDEX = "failing"
IN_A_ROW = 3
"""So many failures without progress are more than a passing fault."""


@dataclass(frozen=True, slots=True)
class FailingJobs:
    """Jobs of one exchange that fail with the same code."""

    exchange_id: str
    code: str
    reason: str
    """The error of one of them, in words."""
    since_ms: int | None
    jobs: int
    example: str
    """The id of one of them."""
    gave_up: bool
    """Whether they wait for an operator; the others are tried again."""


async def failing_jobs(database: Database) -> list[FailingJobs]:
    """By exchange and code; reads the documents of failing jobs alone."""
    jobs = database.jobs
    gave_up = await jobs.aggregate(
        [
            {"$match": {"state": State.FAILED.value, "status": {"$in": sorted(LIVE)}}},
            *_grouped(),
        ],
        hint=BY_STATE.name,
    )
    # A claim counts an attempt before it has an outcome.
    under_way = {"state": State.RUNNING.value, "attempt": IN_A_ROW}
    tried = await jobs.aggregate(
        [
            {
                "$match": {
                    "status": Status.ACTIVE.value,
                    "attempt": {"$gte": IN_A_ROW},
                    "stats.last_error": {"$ne": None},
                    "$nor": [under_way],
                }
            },
            *_grouped(),
        ],
        hint=FAILING_INDEX,
    )
    return [
        *(_group(each, gave_up=True) for each in gave_up),
        *(_group(each, gave_up=False) for each in tried),
    ]


def _grouped() -> list[Document]:
    return [
        {
            "$group": {
                "_id": {"exchange_id": "$exchange_id", "code": "$stats.last_error_code"},
                "reason": {"$first": "$stats.last_error"},
                "since_ms": {"$min": "$stats.failing_since"},
                "jobs": {"$sum": 1},
                "example": {"$first": "$_id"},
            }
        },
        {"$sort": {"_id": 1}},
    ]


def _group(found: dict[str, Any], *, gave_up: bool) -> FailingJobs:
    return FailingJobs(
        exchange_id=found["_id"]["exchange_id"],
        code=found["_id"].get("code") or "error",
        reason=found["reason"] or "",
        since_ms=found["since_ms"],
        jobs=found["jobs"],
        example=str(found["example"]),
        gave_up=gave_up,
    )
