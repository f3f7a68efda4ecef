"""Removes deleted jobs for good after some days. Until then lists show them; their runs expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.durations import DAY_MS
from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from collector.mongo.client import Database

DELETED_INDEX = "deleted"
AT_ONCE = 500
BATCHES = 10
"""Limit of one pass; the rest waits for the next turn."""


async def purge(database: Database, days: float) -> int:
    """Removes jobs that were deleted more than `days` ago, oldest first, up to the limit."""
    age_ms = round(days * DAY_MS)
    long_ago = {
        "status": Status.DELETED.value,
        "$expr": {"$lt": ["$updated_at", {"$subtract": ["$$NOW", age_ms]}]},
        # Its worker has not noticed yet; or it died, and the sweeper will release the job.
        "state": {"$ne": State.RUNNING.value},
    }
    gone = 0
    for _ in range(BATCHES):
        found = await database.jobs.find(
            long_ago,
            projection={"_id": 1},
            sort=[("updated_at", 1)],
            hint=DELETED_INDEX,
            limit=AT_ONCE,
        )
        if found:
            ids = [document["_id"] for document in found]
            gone += (await database.jobs.delete_many({"_id": {"$in": ids}})).deleted_count
        if len(found) < AT_ONCE:
            break
    return gone
