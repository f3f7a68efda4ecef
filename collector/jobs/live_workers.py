"""Which workers are alive: one document each, renewed by its worker, gone by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.mongo.client import Database

SEEN_FOR_MS = 40_000
"""How long after its last sign of life a worker still counts as alive."""


class LiveWorkers:
    """Everyone who works on this database, on whatever machine."""

    def __init__(self, database: Database) -> None:
        self._workers = database.workers

    async def be_seen(self, worker_id: str, about: dict[str, Any]) -> None:
        """A sign of life. `about` is what others should know."""
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

    async def all(self) -> list[dict[str, Any]]:
        """By id. MongoDB removes the expired ones only once a minute, so they are left out here."""
        alive = {"$expr": {"$gt": ["$expire_at", "$$NOW"]}}
        return await self._workers.find(alive, sort=[("_id", 1)])
