"""How much of the requested history is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.listing import BY_EXCHANGE_STATE, BY_STATE
from collector.jobs.states import LIVE, State, Status
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collector.mongo.client import Database


@dataclass(frozen=True, slots=True)
class HistoryProgress:
    """Stored bars and expected bars of every backfill that is not deleted."""

    jobs: int = 0
    done: int = 0
    bars: int = 0
    bars_in_all: int = 0

    @property
    def share(self) -> float:
        return self.bars / self.bars_in_all if self.bars_in_all else 0.0


async def history(database: Database) -> HistoryProgress:
    """Counts once, by timeframe."""
    gone = {"$subtract": ["$cursor.since_ms", "$progress.from_ms"]}
    asked = {"$subtract": ["$progress.until_ms", "$progress.from_ms"]}
    counted = await database.jobs.aggregate(
        [
            {"$match": {"type": types.OHLCV_BACKFILL.name, "status": {"$in": sorted(LIVE)}}},
            {
                "$group": {
                    "_id": "$timeframe",
                    "jobs": {"$sum": 1},
                    "done": {"$sum": {"$cond": ["$cursor.done", 1, 0]}},
                    "gone_ms": {"$sum": gone},
                    "asked_ms": {"$sum": asked},
                }
            },
        ]
    )
    steps = [Timeframe.parse(entry["_id"]).ms for entry in counted]
    return HistoryProgress(
        jobs=sum(entry["jobs"] for entry in counted),
        done=sum(entry["done"] for entry in counted),
        bars=sum(e["gone_ms"] // step for e, step in zip(counted, steps, strict=True)),
        bars_in_all=sum(e["asked_ms"] // step for e, step in zip(counted, steps, strict=True)),
    )


async def count_backfills(database: Database) -> int:
    """How many backfills there are that are not deleted, finished ones too."""
    return await database.jobs.count_documents(
        {
            "state": {"$in": [state.value for state in State]},
            "type": types.OHLCV_BACKFILL.name,
            "status": {"$in": sorted(LIVE)},
        },
        hint=BY_STATE.name,
    )


async def backfill_bars_left(database: Database, exchange_id: str | None = None) -> dict[str, int]:
    """Per exchange, or for one, the bars that its active backfills have still to fetch.

    A backfill that has not begun does not know how far it reaches, and counts as one bar.
    """
    reached = {"$max": ["$cursor.since_ms", {"$ifNull": ["$progress.from_ms", 0]}]}
    left = {"$subtract": [{"$ifNull": ["$cursor.until_ms", 0]}, "$reached"]}
    begun = {"$gt": ["$reached", 0]}
    counted = await database.jobs.aggregate(
        [
            {
                "$match": {
                    **({} if exchange_id is None else {"exchange_id": exchange_id}),
                    "state": {"$in": [state.value for state in State]},
                    "type": types.OHLCV_BACKFILL.name,
                    "status": Status.ACTIVE.value,
                }
            },
            {"$set": {"reached": reached}},
            {
                "$group": {
                    "_id": {"exchange_id": "$exchange_id", "timeframe": "$timeframe"},
                    "left_ms": {"$sum": {"$cond": [begun, {"$max": [0, left]}, 0]}},
                    "waiting": {"$sum": {"$cond": [begun, 0, 1]}},
                }
            },
        ],
        hint=(BY_STATE if exchange_id is None else BY_EXCHANGE_STATE).name,
    )
    found: dict[str, int] = {}
    for each in counted:
        bars = each["left_ms"] // Timeframe.parse(each["_id"]["timeframe"]).ms + each["waiting"]
        name = each["_id"]["exchange_id"]
        found[name] = found.get(name, 0) + bars
    return found
