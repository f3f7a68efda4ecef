"""A worker's duty to notice that the database's clock was set back, and to move the schedules.

Every worker looks; the database tells one of them to act (collector/mongo/remembered_time.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector import logs
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.clock_step import move_schedules, shorten_leases
from collector.mongo.remembered_time import RememberedTime
from workers.duty import Duty

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.mongo.client import Database

LOOK_EVERY_SECONDS = 2.0

_log = logs.get("workers")


class ClockWatch:
    """Looks at the remembered time every two seconds."""

    def __init__(self, database: Database, schedules_moved: Callable[[], None]) -> None:
        """`schedules_moved` is called when jobs may be due that were not before."""
        self._database = database
        self._remembered = RememberedTime(database)
        self._schedules_moved = schedules_moved

    async def keep_looking(self) -> None:
        """Until cancelled."""
        duty = Duty("clock")
        while True:
            with duty.tolerated():
                await self.look()
            await asyncio.sleep(LOOK_EVERY_SECONDS + duty.pause())

    async def look(self) -> None:
        """Corrects what was dated by a clock that was ahead, when it is this worker's turn."""
        set_back = await self._remembered.look()
        if set_back is None:
            return
        _log.warning("schedules_moved", by_ms=set_back.by_ms)
        await correct_dates(self._database)
        await move_schedules(self._database, set_back.by_ms)
        await self._remembered.schedules_moved(set_back)
        self._schedules_moved()


async def correct_dates(database: Database) -> None:
    """Lets no lease and no block reach further than its term from now."""
    leases = await shorten_leases(database)
    connectors = await ConnectorRegistry(database).correct_dates()
    if leases or connectors:
        _log.warning("dates_corrected", leases=leases, connectors=connectors)
