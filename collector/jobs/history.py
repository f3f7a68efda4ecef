"""How much of the requested history is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.listing import BY_EXCHANGE_STATE, BY_STATE
from collector.jobs.states import LIVE, State, Status
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

_BACKFILLS: Document = {
    "state": {"$in": [state.value for state in State]},
    "type": types.OHLCV_BACKFILL.name,
    "status": {"$in": sorted(LIVE)},
}


@dataclass(frozen=True, slots=True)
class BackfillCount:
    """The backfills of one exchange and timeframe that are not deleted."""

    exchange_id: str
    timeframe: str
    jobs: int
    done: int
    bars: int
    """Bars that were fetched."""
    bars_in_all: int
    """Bars that were asked for, as far as that is known."""
    bars_left: int
    """Bars that the active ones have still to fetch. One that has not begun does not know how far
    it reaches, and counts as one bar."""


async def count_backfilled(
    database: Database, exchange_id: str | None = None
) -> list[BackfillCount]:
    """Of all exchanges, or of one. Reads the documents of backfills and of no other jobs."""
    gone = {"$subtract": ["$cursor.since_ms", "$progress.from_ms"]}
    asked = {"$subtract": ["$progress.until_ms", "$progress.from_ms"]}
    reached = {"$max": ["$cursor.since_ms", {"$ifNull": ["$progress.from_ms", 0]}]}
    left = {"$subtract": [{"$ifNull": ["$cursor.until_ms", 0]}, "$reached"]}
    begun = {"$gt": ["$reached", 0]}
    active = {"$eq": ["$status", Status.ACTIVE.value]}
    counted = await database.jobs.aggregate(
        [
            {"$match": _BACKFILLS | ({} if exchange_id is None else {"exchange_id": exchange_id})},
            {"$set": {"reached": reached}},
            {
                "$group": {
                    "_id": {"exchange_id": "$exchange_id", "timeframe": "$timeframe"},
                    "jobs": {"$sum": 1},
                    "done": {"$sum": {"$cond": ["$cursor.done", 1, 0]}},
                    "gone_ms": {"$sum": gone},
                    "asked_ms": {"$sum": asked},
                    "left_ms": {
                        "$sum": {"$cond": [{"$and": [active, begun]}, {"$max": [0, left]}, 0]}
                    },
                    "waiting": {"$sum": {"$cond": [{"$and": [active, {"$not": [begun]}]}, 1, 0]}},
                }
            },
        ],
        hint=(BY_STATE if exchange_id is None else BY_EXCHANGE_STATE).name,
    )
    return [_backfill_count(each) for each in counted]


async def count_backfills(database: Database) -> int:
    """How many backfills there are that are not deleted, finished ones too."""
    return await database.jobs.count_documents(_BACKFILLS, hint=BY_STATE.name)


def _backfill_count(group: Document) -> BackfillCount:
    step = Timeframe.parse(group["_id"]["timeframe"]).ms
    return BackfillCount(
        **group["_id"],
        jobs=group["jobs"],
        done=group["done"],
        bars=group["gone_ms"] // step,
        bars_in_all=group["asked_ms"] // step,
        bars_left=group["left_ms"] // step + group["waiting"],
    )
