"""An index of live series whose newest slots are reported as empty.

Partial: only jobs with open silences are in it, so that everyday runs never write to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel

from collector.jobs.unconfirmed import SILENCES_INDEX, SILENT

if TYPE_CHECKING:
    from collector.mongo.client import Database

INDEXES = [
    IndexModel(
        [("status", ASCENDING), ("exchange_id", ASCENDING)],
        name=SILENCES_INDEX,
        partialFilterExpression={"type": "ohlcv_incremental", **SILENT},
    )
]


async def apply(database: Database) -> None:
    await database.raw["jobs"].create_indexes(INDEXES)
