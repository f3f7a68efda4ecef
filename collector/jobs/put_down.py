"""Jobs of a restored database: those that ran when the backup was made run again now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.states import State, Status
from collector.mongo.client import EPOCH_SECONDS, NOW_MS, Document

if TYPE_CHECKING:
    from collector.mongo.client import Database

_RAN: Document = {"$eq": ["$state", State.RUNNING.value]}
_ACTIVE: Document = {"$eq": ["$status", Status.ACTIVE.value]}
_AT_REST: Document = {"$cond": [_ACTIVE, State.QUEUED.value, State.IDLE.value]}


async def put_down_restored(database: Database) -> None:
    """Ends every lease; fences go on above all that were given since the backup."""
    await database.jobs.update_many(
        {},
        [
            {
                "$set": {
                    "state": {"$cond": [_RAN, _AT_REST, "$state"]},
                    # A running job is due when its lease ends, which is over.
                    "next_run_at": {"$cond": [_RAN, NOW_MS, "$next_run_at"]},
                    "lock": {"locked_by": None, "lock_until": None, "lease_token": None},
                    "fence": {"$max": ["$fence", EPOCH_SECONDS]},
                }
            }
        ],
    )
