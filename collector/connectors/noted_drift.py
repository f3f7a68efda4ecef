"""The drift of an exchange's clock, as workers last measured it: `clock` of its connector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collector.mongo.client import Database


async def note_drift(
    database: Database, exchange_id: str, drift_ms: float, doubt_ms: float, *, is_off: bool
) -> None:
    """How far its clock is ahead of MongoDB's, give or take the doubt.

    `since` is when the clocks were first found too far apart; null while they agree.
    """
    clock = {
        "drift_ms": round(drift_ms),
        "doubt_ms": round(doubt_ms),
        "measured_at": NOW_MS,
        "since": {"$ifNull": ["$clock.since", NOW_MS]} if is_off else None,
    }
    await database.connectors.update_one({"exchange_id": exchange_id}, [{"$set": {"clock": clock}}])
