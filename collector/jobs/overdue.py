"""How long due jobs have been waiting for a worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector.jobs.lease_statements import NEXT_DUE_INDEX
from collector.jobs.states import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database, Document

MOST_COUNTED = 1_000
"""A backlog of more is not counted further: it is read often, while the database is busy."""
_ACTIVE = {"status": Status.ACTIVE.value}


async def oldest_due(database: Database, exchange_ids: Sequence[str]) -> dict[str, int]:
    """Per exchange, when its next job is or was due: one job is read for each."""

    async def of(exchange_id: str) -> list[Document]:
        return await database.jobs.find(
            {**_ACTIVE, "exchange_id": exchange_id},
            projection={"next_run_at": 1},
            sort=[("next_run_at", 1)],
            hint=NEXT_DUE_INDEX,
            limit=1,
        )

    found = await asyncio.gather(*(of(exchange_id) for exchange_id in exchange_ids))
    pairs = zip(exchange_ids, found, strict=True)
    return {exchange_id: jobs[0]["next_run_at"] for exchange_id, jobs in pairs if jobs}


async def count_due(database: Database, exchange_id: str, before_ms: int) -> int:
    """How many active jobs of an exchange were due before a moment; MOST_COUNTED at most."""
    return await database.jobs.count_documents(
        {**_ACTIVE, "exchange_id": exchange_id, "next_run_at": {"$lt": before_ms}},
        hint=NEXT_DUE_INDEX,
        limit=MOST_COUNTED,
    )
