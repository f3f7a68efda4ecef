"""An index of jobs that keep failing.

Partial: a job is in it from its third failure in a row to its next success, so that everyday runs
never write to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel

from collector.jobs.failing import FAILING_INDEX, IN_A_ROW

if TYPE_CHECKING:
    from collector.mongo.client import Database

INDEXES = [
    IndexModel(
        [("exchange_id", ASCENDING), ("attempt", ASCENDING)],
        name=FAILING_INDEX,
        partialFilterExpression={"status": "active", "attempt": {"$gte": IN_A_ROW}},
    )
]


async def apply(database: Database) -> None:
    await database.raw["jobs"].create_indexes(INDEXES)
