"""Work has come for a job that is made for it: it runs at once, and is made if there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.mongo.client import NOW_MS, WAKE

if TYPE_CHECKING:
    from collector.jobs.job import JobSpec
    from collector.mongo.client import Database


async def wake(database: Database, spec: JobSpec) -> None:
    """Lets the job run now. A running job runs once more, because it may have looked too early.

    A paused job stays paused, and one that backs off after a fault comes back at its time.
    """
    rest = {"status": Status.ACTIVE.value, "state": State.IDLE.value, "waiting_for": None}
    at_rest = {"$and": [{"$eq": [f"${name}", value]} for name, value in rest.items()]}
    running = {"$eq": ["$state", State.RUNNING.value]}
    fields = {
        "state": {"$cond": [at_rest, State.QUEUED.value, "$state"]},
        "next_run_at": {"$cond": [at_rest, NOW_MS, "$next_run_at"]},
        "next_after_run": {"$cond": [running, NOW_MS, "$next_after_run"]},
        "wake": WAKE,
    }
    live = {"$in": [Status.ACTIVE.value, Status.PAUSED.value]}
    result = await database.jobs.update_one(
        {"unique_key": spec.unique_key, "status": live}, [{"$set": fields}]
    )
    if not result.matched_count:
        await JobQueue(database).add(spec)
