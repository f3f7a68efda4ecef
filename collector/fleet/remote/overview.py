"""The state of everything by REST."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from collector.fleet.remote.dates import with_dates

if TYPE_CHECKING:
    from collector.fleet.interface import Shown
    from collector.operations.series_reports import SeriesFilter
    from collector.remote.api_client import ApiClient

_PATHS = {
    "coverage": "coverage",
    "missing": "reports/missing",
    "validation": "reports/validation",
}


@dataclass(frozen=True, slots=True)
class RemoteOverview:
    api: ApiClient

    async def status(self, *, count_now: bool = True) -> Shown:
        found: Shown = with_dates(await self.api.get("status", patient=True))
        return found

    async def troubles(self) -> list[Shown]:
        """With jobs counted now; `/troubles` may have a count of some seconds ago."""
        found: list[Shown] = (await self.status())["troubles"]
        return found

    async def workers(self) -> list[Shown]:
        found: list[Shown] = with_dates((await self.api.get("workers"))["items"])
        return found

    async def report(self, name: str, asked: SeriesFilter) -> Shown:
        given = {key: str(value) for key, value in asdict(asked).items() if value not in (None, "")}
        made: Shown = await self.api.get(_PATHS[name], given, patient=True)
        return made

    async def now_ms(self) -> int:
        """This machine's clock: `30d` ago is meant by the person here."""
        return time.time_ns() // 1_000_000
