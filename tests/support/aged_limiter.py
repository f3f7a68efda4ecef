"""A connector's limiter as a server sees it whose clock is ahead: all grants are long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document


async def age_limiter(database: Database, ms: int) -> None:
    """Dates the grants of exchange `x` back by so much."""
    older: Document = {"t": {"$subtract": ["$$this.t", ms]}}
    aged: Document = {"$mergeObjects": ["$$this", older]}
    fields = {
        "windows": {"$map": {"input": "$limiter.windows", "in": aged}},
        "clock": {"$subtract": ["$limiter.clock", ms]},
    }
    await database.connectors.update_one(
        {"exchange_id": "x"}, [{"$set": {"limiter": {"$mergeObjects": ["$limiter", fields]}}}]
    )
