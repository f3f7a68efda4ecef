"""The sweeper: paused or deleted jobs whose worker died before it could release them.

Active jobs need no sweeper, because an expired lease makes them due (see lease.py). The others
match no lease query, so their `running` would stay for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.lease_statements import RUNNING_INDEX
from collector.jobs.states import BY_NAME, State
from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collector.mongo.client import Database


async def sweep(database: Database) -> int:
    """Releases them. The fence is incremented, so that a late worker's write is still refused."""
    put_down = BY_NAME["put_down"]
    assert put_down.state_to is not None
    result = await database.jobs.update_many(
        {
            "status": {"$ne": "active"},
            "state": State.RUNNING.value,
            "$expr": {"$lte": ["$lock.lock_until", NOW_MS]},
        },
        [
            {
                "$set": {
                    "state": put_down.state_to.value,
                    "fence": {"$add": ["$fence", 1]},
                    "lock": {"locked_by": None, "lock_until": None, "lease_token": None},
                    "updated_at": "$$NOW",
                }
            }
        ],
        hint=RUNNING_INDEX,
    )
    return result.modified_count
