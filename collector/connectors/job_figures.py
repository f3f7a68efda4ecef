"""What a connector reports about its exchange's jobs. Workers write it without waking others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pymongo import UpdateOne

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.mongo.client import Database, Document

_NOT_DELETED = {"status": {"$ne": "deleted"}}


class JobFigures:
    """`jobs_count`, `active_jobs_count` and `last_job_run_time`."""

    def __init__(self, database: Database) -> None:
        self._connectors = database.connectors

    async def counted(self, live: Mapping[str, int], active: Mapping[str, int]) -> None:
        """Records how many jobs each exchange has; an exchange that is not listed has none."""
        connectors = await self._connectors.find(_NOT_DELETED, projection={"exchange_id": 1})
        names = [connector["exchange_id"] for connector in connectors]
        await self._write(
            {
                name: {
                    "$set": {
                        "jobs_count": live.get(name, 0),
                        "active_jobs_count": active.get(name, 0),
                    }
                }
                for name in names
            }
        )

    async def ran(self, last_ms: Mapping[str, int]) -> None:
        """When the last run of each exchange began; an earlier report never replaces a later."""
        dates = {name: datetime.fromtimestamp(ms / 1000, UTC) for name, ms in last_ms.items()}
        await self._write(
            {name: {"$max": {"last_job_run_time": date}} for name, date in dates.items()}
        )

    async def _write(self, updates: Mapping[str, Document]) -> None:
        if updates:
            await self._connectors.bulk_write(
                [
                    UpdateOne({"exchange_id": exchange_id, **_NOT_DELETED}, update)
                    for exchange_id, update in updates.items()
                ],
                ordered=False,
            )
