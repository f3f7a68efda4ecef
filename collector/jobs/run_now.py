"""The one way to make a job run now, for operators and for programs.

A waiting job becomes due. A running job may have looked for work a moment before the request, so
it runs once more: `run_again` makes it due when its run ends, whatever that run comes to, except
that a run without a token waits for one.

An operator's request also starts a job that backs off, waits for tokens, is finished or has
failed. A program's request leaves those alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.states import State, Status
from collector.mongo.client import NOW_MS, WAKE

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

FRESH_START: Document = {
    "next_run_at": NOW_MS,
    "waiting_for": None,
    "refused": None,
    **dict.fromkeys(("attempt", "kills", "kills_alone"), 0),
}
"""What an operator's request changes in a job at rest: earlier failures no longer count."""


async def run_soon(database: Database, chosen: Document) -> int:
    """A program's request for all active jobs that `chosen` matches; returns how many it matches.

    A job that is due already is not written.
    """
    waits = {"$and": [{"$eq": ["$state", State.IDLE.value]}, {"$eq": ["$waiting_for", None]}]}
    runs = {"$eq": ["$state", State.RUNNING.value]}
    due = {
        "$mergeObjects": [
            "$$ROOT",
            {"state": State.QUEUED.value, "next_run_at": NOW_MS, "wake": WAKE},
        ]
    }
    again = {"$mergeObjects": ["$$ROOT", {"run_again": True}]}
    branches = [{"case": waits, "then": due}, {"case": runs, "then": again}]
    result = await database.jobs.update_many(
        {**chosen, "status": Status.ACTIVE.value},
        [{"$replaceWith": {"$switch": {"branches": branches, "default": "$$ROOT"}}}],
    )
    return result.matched_count
