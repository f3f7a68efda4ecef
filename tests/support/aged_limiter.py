"""A connector's limiter as a server sees it whose clock is ahead: all grants are long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document


async def age_limiter(database: Database, ms: int) -> None:
    """Dates the grants of exchange `x` back by so much."""

    def aged(states: Any) -> Document:
        older: Document = {"t": {"$subtract": ["$$this.t", ms]}}
        return {"$map": {"input": states, "in": {"$mergeObjects": ["$$this", older]}}}

    bins = {"$ifNull": ["$$window.bins", []]}
    windows = {
        "$map": {
            "input": aged("$limiter.windows"),
            "as": "window",
            "in": {"$mergeObjects": ["$$window", {"bins": aged(bins)}]},
        }
    }
    dates = {name: {"$subtract": [f"$limiter.{name}", ms]} for name in ("clock", "ahead_at")}
    fields = {"windows": windows, **dates}
    await database.connectors.update_one(
        {"exchange_id": "x"}, [{"$set": {"limiter": {"$mergeObjects": ["$limiter", fields]}}}]
    )
