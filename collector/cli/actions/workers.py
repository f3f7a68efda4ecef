"""Whether a worker is running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.live_workers import LiveWorkers

if TYPE_CHECKING:
    from collector.mongo.client import Database


async def no_worker_note(database: Database) -> list[str]:
    """A hint after creating work while no worker is running; empty otherwise."""
    if await LiveWorkers(database).all():
        return []
    return ["no worker is running: start one with `collector up` or `collector worker`"]
