"""A turn: a duty that one process does for all, on the server's clock.

The first process that finds the duty due takes it in one statement; the others find it taken. A
turn that breaks off, such as in an outage of MongoDB, is taken again by its holder at once. It also
expires: when its holder dies, the duty is due again. So doing it twice must do no harm.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

HELD_FOR_MS = 20_000
"""How long the others wait for a holder that has stopped reporting."""


class DutyTurn:
    """The turns of one process at one duty, one after the other.

    The result of the last turn is stored for every process.
    """

    def __init__(self, database: Database, duty: str) -> None:
        self._system = database.system
        self._id = {"_id": f"turn:{duty}"}
        self._holder = uuid.uuid4().hex

    async def take(self, *, late_ms: int = 0) -> bool:
        """Whether to do the duty now; not when it is not due, or another process has taken it.

        With `late_ms` only a duty that has been due for that long is taken, so that the processes
        it belongs to come first.
        """
        due_at = {"$ifNull": ["$due_at", 0]}
        # A turn that is further away than it was ever set to was set by a clock that was ahead.
        furthest = {"$add": [NOW_MS, {"$ifNull": ["$rest_ms", 0]}]}
        due = {
            "$or": [
                {"$lte": [{"$add": [due_at, late_ms]}, NOW_MS]},
                {"$gt": [due_at, furthest]},
                {"$eq": ["$holder", self._holder]},
            ]
        }
        held = {"holder": self._holder, **_rest(HELD_FOR_MS)}
        update = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", {"$cond": [due, held, {}]}]}}]
        try:
            document = await self._system.find_one_and_update(
                self._id, update, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            return False  # The first two met, and the other one was faster.
        return document is not None and document.get("holder") == self._holder

    async def end(self, result: Document, *, rest_ms: int) -> None:
        """Stores the result; the duty is due again after `rest_ms`.

        Writes nothing when the turn has expired and another process may hold it.
        """
        fields = {"result": {"$literal": result}, "holder": None, **_rest(rest_ms)}
        await self._system.update_one({**self._id, "holder": self._holder}, [{"$set": fields}])

    async def last_result(self) -> Document | None:
        document = await self._system.find_one(self._id, projection={"result": 1})
        return (document or {}).get("result")


def _rest(rest_ms: int) -> Document:
    return {"due_at": {"$add": [NOW_MS, rest_ms]}, "rest_ms": rest_ms}
