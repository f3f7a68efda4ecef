"""Indexes for a hundred thousand jobs: lists in order, counts, lags, and what was deleted long ago.

`series` and `counts` go: what they were for is answered by the new ones. Every index that holds
`state` is written twice a run, so there are two and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel

if TYPE_CHECKING:
    from collector.mongo.client import Database

LISTS = {
    "by_status": ("status", "_id"),
    "by_exchange": ("exchange_id", "status", "_id"),
    "by_symbol": ("symbol", "exchange_id", "status", "_id"),
    "by_state": ("state", "type", "timeframe", "status", "_id"),
    "by_exchange_state": ("exchange_id", "state", "type", "timeframe", "status", "_id"),
}

INDEXES = [
    *(
        IndexModel([(field, ASCENDING) for field in fields], name=name)
        for name, fields in LISTS.items()
    ),
    # Partial: a cursor moves with every page, and only new bars can lag.
    IndexModel(
        [
            (field, ASCENDING)
            for field in ("type", "status", "exchange_id", "timeframe", "cursor.since_ms")
        ],
        name="lag",
        partialFilterExpression={"type": "ohlcv_incremental"},
    ),
    IndexModel(
        [("updated_at", ASCENDING)],
        name="deleted",
        partialFilterExpression={"status": "deleted"},
    ),
]

GONE = ("series", "counts")


async def apply(database: Database) -> None:
    jobs = database.raw["jobs"]
    await jobs.create_indexes(INDEXES)
    there = await jobs.index_information()
    for name in GONE:
        if name in there:
            await jobs.drop_index(name)
