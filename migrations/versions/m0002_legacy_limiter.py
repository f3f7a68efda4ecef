"""Removes the limiter that once lived on every job (seed 004, section 8, step 6).

Accounting is exchange-wide now; figures left on jobs would only mislead whoever reads them.
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
