"""When jobs are due, and how long due ones have been waiting for a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.lease_statements import NEXT_DUE_INDEX
from collector.jobs.states import Status

if TYPE_CHECKING:
    from collector.mongo.client import Database

MOST_COUNTED = 1_000
"""A backlog of more is not counted further: it is read often, while the database is busy."""
_ACTIVE = {"status": Status.ACTIVE.value}


async def first_due(database: Database) -> dict[str, int]:
    """Per exchange, when its next job is or was due. One key of an index is read for each."""
    found = await database.jobs.aggregate(
        [
            {"$match": _ACTIVE},
            {"$sort": {"exchange_id": 1, "next_run_at": 1}},
            {"$group": {"_id": "$exchange_id", "first": {"$first": "$next_run_at"}}},
        ],
        hint=NEXT_DUE_INDEX,
    )
    return {each["_id"]: each["first"] for each in found}


async def count_due(database: Database, exchange_id: str, before_ms: int) -> int:
    """How many active jobs of an exchange were due before a moment; MOST_COUNTED at most."""
    return await database.jobs.count_documents(
        {**_ACTIVE, "exchange_id": exchange_id, "next_run_at": {"$lt": before_ms}},
        hint=NEXT_DUE_INDEX,
        limit=MOST_COUNTED,
    )
