"""What is corrected in jobs when the database's clock was set back (mongo/remembered_time.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.lease_statements import RUNNING_INDEX
from collector.jobs.states import State, Status
from collector.lease_terms import TTL_MS
from collector.mongo.client import NOW_MS
from collector.mongo.remembered_time import SET_BACK_MS, at_most_from_now

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.mongo.client import Database, Document

MOVED_AT_ONCE = 1_000
"""Jobs per statement: it has to end long before the driver gives up waiting for its answer."""


async def shorten_leases(database: Database) -> int:
    """Lets no lease reach further than its own term from now; returns how many did.

    A live worker's lease is renewed in time. One whose worker died while the clock was ahead would
    keep its job until that time comes again.
    """
    term = {"$ifNull": ["$lock.ttl_ms", TTL_MS]}
    until = at_most_from_now("lock.lock_until", term)
    result = await database.jobs.update_many(
        {
            "state": State.RUNNING.value,
            "$expr": {"$gt": ["$lock.lock_until", {"$add": [NOW_MS, term, SET_BACK_MS]}]},
        },
        [{"$set": {"lock.lock_until": until, "next_run_at": until}}],
        hint=RUNNING_INDEX,
    )
    return result.modified_count


async def move_schedules(database: Database, by_ms: int) -> None:
    """Moves waiting jobs earlier by as much as the clock was set back, but not before now.

    Moving them twice does no harm: a job that runs too early finds nothing to do. No job's `wake`
    is touched, because thousands of events would reach every worker; they look at their exchanges
    every few seconds in any case.
    """
    waiting: Document = {
        "status": Status.ACTIVE.value,
        "state": {"$ne": State.RUNNING.value},
        "$expr": {"$gt": ["$next_run_at", NOW_MS]},
    }
    sooner = {"$max": [NOW_MS, {"$subtract": ["$next_run_at", by_ms]}]}
    last: ObjectId | None = None
    while True:
        found = await database.jobs.find(
            waiting if last is None else {"_id": {"$gt": last}, **waiting},
            projection={"_id": 1},
            sort=[("_id", 1)],
            limit=MOVED_AT_ONCE,
        )
        if not found:
            return
        ids = [document["_id"] for document in found]
        last = ids[-1]
        await database.jobs.update_many(
            {"_id": {"$in": ids}, **waiting}, [{"$set": {"next_run_at": sooner}}]
        )
