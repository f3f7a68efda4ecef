"""A turn: a duty that one process does for all, on the server's clock.

The first process that finds the duty due takes it in one statement; the others find it taken. A
turn expires: when its holder dies, the duty is due again. So doing it twice must do no harm.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

HELD_FOR_MS = 60_000
"""How long the others wait for a holder that has stopped reporting."""


class DutyTurn:
    """The turns at one duty. The result of the last one is stored for every process."""

    def __init__(self, database: Database, duty: str) -> None:
        self._system = database.system
        self._id = {"_id": f"turn:{duty}"}

    async def take(self, *, late_ms: int = 0) -> str | None:
        """A token for the right to do the duty now; None when it is taken or not due.

        With `late_ms` only a duty that has been due for that long is taken, so that the processes
        it belongs to come first.
        """
        token = uuid.uuid4().hex
        due_at = {"$ifNull": ["$due_at", 0]}
        # A turn that is further away than it was ever set to was set by a clock that was ahead.
        furthest = {"$add": [NOW_MS, {"$ifNull": ["$rest_ms", 0]}]}
        due = {
            "$or": [
                {"$lte": [{"$add": [due_at, late_ms]}, NOW_MS]},
                {"$gt": [due_at, furthest]},
            ]
        }
        held = {"token": token, **_rest(HELD_FOR_MS)}
        update = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", {"$cond": [due, held, {}]}]}}]
        try:
            document = await self._system.find_one_and_update(
                self._id, update, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            return None  # The first two met, and the other one was faster.
        return token if document is not None and document["token"] == token else None

    async def end(self, token: str, result: Document, *, rest_ms: int) -> None:
        """Stores the result; the duty is due again after `rest_ms`.

        Writes nothing when the turn has expired and another process may hold it.
        """
        fields = {"result": {"$literal": result}, **_rest(rest_ms)}
        await self._system.update_one({**self._id, "token": token}, [{"$set": fields}])

    async def last_result(self) -> Document | None:
        document = await self._system.find_one(self._id, projection={"result": 1})
        return (document or {}).get("result")


def _rest(rest_ms: int) -> Document:
    return {"due_at": {"$add": [NOW_MS, rest_ms]}, "rest_ms": rest_ms}
