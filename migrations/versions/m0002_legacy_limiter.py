"""Removes the limiter that earlier versions kept on every job.

Accounting is exchange-wide now; figures left on jobs would only be misleading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.mongo.client import Database

LEGACY_JOB_FIELDS = (
    "rate_limit",
    "rate_limit_usage",
    "rate_limit_period_ms",
    "rate_limit_window_start",
    "rate_limit_reset_at",
    "requests_made",
    "last_request_at",
)


async def apply(database: Database) -> None:
    present = {"$or": [{name: {"$exists": True}} for name in LEGACY_JOB_FIELDS]}
    await database.raw["jobs"].update_many(
        present, {"$unset": dict.fromkeys(LEGACY_JOB_FIELDS, "")}
    )
