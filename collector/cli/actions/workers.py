"""Who is there to do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.mongo.client import Database


async def alive(database: Database) -> list[dict[str, Any]]:
    """The workers that were seen lately, in a fixed order."""
    return await database.workers.find(
        {"$expr": {"$gt": ["$expire_at", "$$NOW"]}}, sort=[("_id", 1)], limit=1000
    )


async def nobody_works(database: Database) -> list[str]:
    """What to tell somebody who has just made work and has no worker; nothing otherwise."""
    if await alive(database):
        return []
    return ["no worker is running: start one with `collector up` or `collector worker`"]
