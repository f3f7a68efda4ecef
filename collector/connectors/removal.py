"""How a connector is removed: announced first, then completed or cancelled.

While a removal is announced no new jobs are kept (see operations/connected_jobs.py). The
announcement expires on the server's clock, so that a process which dies meanwhile leaves a working
connector. A removal that takes longer than that is refused: jobs may have been added since.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pymongo import ReturnDocument

from collector.connectors.connector import Connector
from collector.errors import Changed, NotFound
from collector.mongo.client import NOW_MS, WAKE

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

ANNOUNCED_FOR_MS = 30_000
_NOT_DELETED = {"status": {"$ne": "deleted"}}


class Removal:
    """Every statement on the removal of connectors."""

    def __init__(self, database: Database) -> None:
        self._connectors = database.connectors

    async def stands(self, exchange_id: str) -> bool:
        """Whether there is a connector that is not being removed."""
        announced = {"$gt": [{"$ifNull": ["$removal.until", 0]}, NOW_MS]}
        found = await self._connectors.find_one(
            {"exchange_id": exchange_id, **_NOT_DELETED, "$expr": {"$not": announced}},
            projection={"_id": 1},
        )
        return found is not None

    async def announce(self, exchange_id: str, *, only_if: Document | None = None) -> str:
        """Announces the removal; returns the token to finish it with. NotFound when it is gone.

        Changed when it is there and does not have the values of `only_if` any more.
        """
        there = {"exchange_id": exchange_id, **_NOT_DELETED}
        token = uuid.uuid4().hex
        until = {"$add": [NOW_MS, ANNOUNCED_FOR_MS]}
        announced = await self._connectors.find_one_and_update(
            {"$and": [there, only_if or {}]},
            [{"$set": {"removal": {"token": token, "until": until}}}],
            projection={"_id": 1},
        )
        if announced is None and only_if and await self._connectors.find_one(there):
            raise Changed(f"the connector {exchange_id!r} was changed meanwhile")
        if announced is None:
            raise NotFound(f"there is no connector {exchange_id!r}")
        return token

    async def give_up(self, exchange_id: str, token: str) -> None:
        """Cancels the removal."""
        await self._connectors.update_one(
            {"exchange_id": exchange_id, "removal.token": token}, {"$unset": {"removal": ""}}
        )

    async def finish(self, exchange_id: str, token: str) -> Connector | None:
        """Soft delete. None when the announcement has expired, or another process made its own."""
        in_time: Document = {"$expr": {"$gt": ["$removal.until", NOW_MS]}}
        document = await self._connectors.find_one_and_update(
            {"exchange_id": exchange_id, "removal.token": token, **in_time},
            [
                {"$set": {"status": "deleted", "paused_until": None}},
                {"$set": {"wake": WAKE, "updated_at": "$$NOW"}},
                {"$unset": "removal"},
            ],
            return_document=ReturnDocument.AFTER,
        )
        return Connector.from_document(document) if document else None
