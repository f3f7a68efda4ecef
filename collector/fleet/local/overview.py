"""The state of the database and the lake."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from collector.jobs.counting import JobCounting
from collector.jobs.live_workers import LiveWorkers
from collector.operations.census import census
from collector.operations.series_reports import SeriesReports
from collector.operations.shown.status import shown_status, shown_worker
from collector.operations.trouble_facts import troubles_now
from collector.reports.expectations import expectations
from collector.reports.validation import Demands
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.fleet.interface import Shown
    from collector.mongo.client import Database
    from collector.operations.series_reports import SeriesFilter
    from collector.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalOverview:
    database: Database
    settings: Settings

    async def status(self, *, count_now: bool = True) -> Shown:
        counting = JobCounting(self.database)
        counts = await (counting.count() if count_now else counting.last())
        found = await census(self.database, counts)
        return shown_status(found, await troubles_now(self.database, counts))

    async def troubles(self) -> list[Shown]:
        found: list[Shown] = (await self.status())["troubles"]
        return found

    async def workers(self) -> list[Shown]:
        return [shown_worker(each) for each in await LiveWorkers(self.database).all()]

    async def report(self, name: str, asked: SeriesFilter) -> Shown:
        quality, resample = self.settings.quality, self.settings.resample
        reports = SeriesReports(
            Store(self.settings.data_root),
            partial(expectations, self.database),
            Demands(max_gap_pct=quality.max_gap_pct, strict_gaps=resample.strict_gaps),
            await self.database.now_ms(),
            _here,
        )
        made: Shown = await getattr(reports, name)(asked)
        return made

    async def now_ms(self) -> int:
        return await self.database.now_ms()


async def _here(function: Callable[[], Any]) -> Any:
    """In this thread: Ctrl-C ends a thread only when it is done."""
    await asyncio.sleep(0)
    return function()
