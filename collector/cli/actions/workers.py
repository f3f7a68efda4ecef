"""Who is there to do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.live_workers import LiveWorkers

if TYPE_CHECKING:
    from collector.mongo.client import Database


async def nobody_works(database: Database) -> list[str]:
    """What to tell somebody who has just made work and has no worker; nothing otherwise."""
    if await LiveWorkers(database).all():
        return []
    return ["no worker is running: start one with `collector up` or `collector worker`"]
