"""Which workers are alive: one document each, renewed by its worker, removed by expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.mongo.client import Database

SEEN_FOR_MS = 40_000
"""How long after its last heartbeat a worker still counts as alive."""


class LiveWorkers:
    """All workers on this database, on any machine."""

    def __init__(self, database: Database) -> None:
        self._workers = database.workers

    async def be_seen(self, worker_id: str, about: dict[str, Any]) -> None:
        """A heartbeat. `about` is published to other processes."""
        await self._workers.update_one(
            {"_id": worker_id},
            [
                {
                    "$set": {
                        **about,
                        "started_at": {"$ifNull": ["$started_at", "$$NOW"]},
                        "seen_at": "$$NOW",
                        "expire_at": {"$add": ["$$NOW", SEEN_FOR_MS]},
                    }
                }
            ],
            upsert=True,
        )

    async def leave(self, worker_id: str) -> None:
        await self._workers.delete_one({"_id": worker_id})

    async def count(self) -> int:
        """How many workers are alive."""
        return await self._workers.count_documents({"$expr": {"$gt": ["$expire_at", "$$NOW"]}})

    async def all(self) -> list[dict[str, Any]]:
        """Live workers by id, without expired ones, which MongoDB removes only once a minute."""
        alive = {"$expr": {"$gt": ["$expire_at", "$$NOW"]}}
        return await self._workers.find(alive, sort=[("_id", 1)])
