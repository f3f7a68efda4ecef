"""What a report on files may expect of series, with MongoDB's help where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import ConfigError, RetryLater
from collector.mongo.home import announced_uri
from collector.operations.opened_database import opened_database, quietly
from collector.reports.expectations import expectations
from collector.reports.expected import Expected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.market.series import Series
    from collector.operations.deployment import Deployment


@dataclass(frozen=True, slots=True)
class Expecting:
    """What is expected of each series. `note` reports when only the files were used."""

    of: Mapping[Series, Expected]
    note: str = ""

    @property
    def notes(self) -> list[str]:
        return [self.note] if self.note else []


async def expecting(where: Deployment, series: Sequence[Series], now_ms: int) -> Expecting:
    """Uses the configured database, or the one that a running process has opened in the home.

    No database is started for this. Without one a calendar begins where its files begin.
    """
    settings = where.settings
    if settings.mongo_uri is None and announced_uri(settings.home) is None:
        return _by_files(series, now_ms, "no MongoDB is running")
    try:
        with quietly():
            async with opened_database(where, "datalayer") as database:
                return Expecting(await expectations(database, series, now_ms))
    except (RetryLater, ConfigError) as error:
        return _by_files(series, now_ms, str(error))


def _by_files(series: Sequence[Series], now_ms: int, why: str) -> Expecting:
    note = f"jobs and listings are not known, calendars begin where files do: {why}"
    return Expecting({each: Expected.by_now(now_ms) for each in series}, note)
