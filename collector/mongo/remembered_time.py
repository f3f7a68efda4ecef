"""The latest time that the database's clock has shown, remembered in the database.

Workers schedule jobs on the database's clock. When that clock was ahead for a while and is set back
by an hour, or when a primary with a right clock replaces one with a wrong clock, whatever was
scheduled meanwhile comes an hour too late. No process can be relied on to notice: it may have been
started after the step. So the latest time is kept in one document. The statement that finds it
ahead of now lowers it, and returns by how much to exactly one process, which then moves the
schedules.

A process that dies before it has finished is replaced after a minute: `owed_ms` stays until the
schedules were moved. Moving them twice does no harm, because a job that runs too early finds
nothing to do.

What has a term of its own needs no such memory: a lease that ends later than its term from now was
written by a clock that was ahead, and is shortened wherever it is found (`at_most_from_now`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from typing import Any

    from collector.mongo.client import Database, Document

SET_BACK_MS = 2_000
"""The clocks of two primaries may differ by less. More than that is a clock that was set."""
REMEMBERED_EVERY_MS = 2_000
"""The document is not written more often than this, however many processes look at it."""
MOVING_FOR_MS = 60_000
"""How long the others wait for the process that moves the schedules."""


def at_most_from_now(field: str, term_ms: Any) -> Document:
    """The date in `field`, or `term_ms` from now when it is later than that."""
    latest = {"$add": [NOW_MS, term_ms]}
    return {"$cond": [{"$gt": [f"${field}", latest]}, latest, f"${field}"]}


@dataclass(frozen=True, slots=True)
class SetBack:
    """The clock was set back by this much, and this process has to move the schedules."""

    by_ms: int
    token: str


class RememberedTime:
    """The document `clock` of the collection `system`."""

    def __init__(self, database: Database) -> None:
        self._system = database.system

    async def look(self) -> SetBack | None:
        """Remembers the time; what it was set back by, when this process has to act on it."""
        token = uuid.uuid4().hex
        ahead = {"$subtract": [{"$ifNull": ["$latest_ms", 0]}, NOW_MS]}
        step = {"$cond": [{"$gt": [ahead, SET_BACK_MS]}, ahead, 0]}
        old = {"$lt": [ahead, -REMEMBERED_EVERY_MS]}
        # A mover's time is over, or lies further ahead than it can: then it is of another clock.
        nobody_moves = {
            "$or": [
                {"$lte": [{"$ifNull": ["$moving_until", 0]}, NOW_MS]},
                {"$gt": ["$moving_until", {"$add": [NOW_MS, MOVING_FOR_MS]}]},
            ]
        }
        is_ours = {"$and": [{"$gt": ["$owed_ms", 0]}, nobody_moves]}
        ours = {"moving_until": {"$add": [NOW_MS, MOVING_FOR_MS]}, "token": token}
        update: list[Document] = [
            {
                "$set": {
                    "owed_ms": {"$add": [{"$ifNull": ["$owed_ms", 0]}, step]},
                    "latest_ms": {"$cond": [{"$or": [old, step]}, NOW_MS, "$latest_ms"]},
                }
            },
            {"$replaceWith": {"$mergeObjects": ["$$ROOT", {"$cond": [is_ours, ours, {}]}]}},
        ]
        try:
            document = await self._system.find_one_and_update(
                {"_id": "clock"}, update, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            return None  # Another process has just made the document.
        if document is None or document.get("token") != token:
            return None
        return SetBack(document["owed_ms"], token)

    async def schedules_moved(self, set_back: SetBack) -> None:
        """Reports that all schedules were moved. Does nothing when another process took over."""
        await self._system.update_one(
            {"_id": "clock", "token": set_back.token},
            [{"$set": {"owed_ms": {"$subtract": ["$owed_ms", set_back.by_ms]}, "moving_until": 0}}],
        )
