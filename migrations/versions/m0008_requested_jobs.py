"""An index of when something was last requested of a job.

Runs never write to it: what they change is not requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel

from collector.jobs.wishes import REQUESTED, REQUESTED_INDEX

if TYPE_CHECKING:
    from collector.mongo.client import Database

INDEXES = [
    IndexModel(
        [("requested_at", ASCENDING)], name=REQUESTED_INDEX, partialFilterExpression=REQUESTED
    )
]


async def apply(database: Database) -> None:
    await database.raw["jobs"].create_indexes(INDEXES)
