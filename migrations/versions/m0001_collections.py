"""Collections and indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel

if TYPE_CHECKING:
    from collector.mongo.client import Database

ACTIVE = {"status": "active"}

INDEXES: dict[str, list[IndexModel]] = {
    "connectors": [
        IndexModel([("exchange_id", ASCENDING)], name="one_per_exchange", unique=True),
        IndexModel([("status", ASCENDING)], name="status"),
    ],
    "jobs": [
        # Equality, sort, range: a lease examines a handful of keys whatever else is due.
        IndexModel(
            [("exchange_id", ASCENDING), ("priority", ASCENDING), ("next_run_at", ASCENDING)],
            name="lease",
            partialFilterExpression=ACTIVE,
        ),
        # One key per exchange tells when its next job is due. Not partial: MongoDB would read every
        # job to see whether the index has it.
        IndexModel(
            [("status", ASCENDING), ("exchange_id", ASCENDING), ("next_run_at", ASCENDING)],
            name="next_due",
        ),
        IndexModel(
            [("exchange_id", ASCENDING), ("lock.lock_until", ASCENDING)],
            name="running",
            partialFilterExpression={"state": "running"},
        ),
        IndexModel(
            [("unique_key", ASCENDING)],
            name="unique_key",
            unique=True,
            partialFilterExpression={"status": {"$in": ["active", "paused"]}},
        ),
        IndexModel(
            [
                ("exchange_id", ASCENDING),
                ("type", ASCENDING),
                ("symbol", ASCENDING),
                ("timeframe", ASCENDING),
            ],
            name="series",
        ),
        IndexModel(
            [("exchange_id", ASCENDING), ("status", ASCENDING), ("state", ASCENDING)],
            name="counts",
        ),
    ],
    "job_runs": [
        IndexModel([("job_id", ASCENDING), ("_id", ASCENDING)], name="of_job"),
        IndexModel([("expire_at", ASCENDING)], name="expire", expireAfterSeconds=0),
    ],
    "markets": [
        IndexModel(
            [("exchange_id", ASCENDING), ("symbol", ASCENDING)], name="one_per_symbol", unique=True
        ),
    ],
    "workers": [
        IndexModel([("expire_at", ASCENDING)], name="expire", expireAfterSeconds=0),
    ],
    "system": [
        IndexModel([("exchange_id", ASCENDING)], name="limiters", unique=True, sparse=True),
    ],
}


async def apply(database: Database) -> None:
    """The first index of a collection makes it, if it is not there."""
    for collection, indexes in INDEXES.items():
        await database.raw[collection].create_indexes(indexes)
