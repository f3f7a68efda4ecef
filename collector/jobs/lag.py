"""How far the collecting of new bars has come, at least, on every exchange."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.listing import distinct
from collector.jobs.states import Status

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

LAG_INDEX = "lag"


@dataclass(frozen=True, slots=True)
class Reached:
    """Up to where every active series of an exchange and timeframe is stored."""

    exchange_id: str
    timeframe: str
    since_ms: int


async def reached(database: Database) -> list[Reached]:
    """For every exchange and timeframe: one index key each."""
    collecting = {"type": types.OHLCV_INCREMENTAL.name, "status": Status.ACTIVE.value}
    exchange_ids = await distinct(database.jobs, collecting, "exchange_id", LAG_INDEX)

    async def of_exchange(exchange_id: str | None) -> list[Reached]:
        # The first key of each timeframe is its oldest cursor, and the only one that is read.
        oldest: Document = {"_id": "$timeframe", "since_ms": {"$first": "$cursor.since_ms"}}
        found = await database.jobs.aggregate(
            [
                {"$match": {**collecting, "exchange_id": exchange_id}},
                {"$sort": {"timeframe": 1, "cursor.since_ms": 1}},
                {"$group": oldest},
            ],
            hint=LAG_INDEX,
        )
        return [Reached(str(exchange_id), each["_id"], each["since_ms"]) for each in found]

    each = await asyncio.gather(*(of_exchange(exchange_id) for exchange_id in exchange_ids))
    return [reached for found in each for reached in found]


async def count_behind(database: Database, exchange_id: str, timeframe: str, before_ms: int) -> int:
    """How many active series of an exchange and timeframe are not stored up to a moment."""
    return await database.jobs.count_documents(
        {
            "type": types.OHLCV_INCREMENTAL.name,
            "status": Status.ACTIVE.value,
            "exchange_id": exchange_id,
            "timeframe": timeframe,
            "cursor.since_ms": {"$lt": before_ms},
        },
        hint=LAG_INDEX,
    )
