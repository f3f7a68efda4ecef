"""What a verb works on: a fleet, or for some this machine's database. Logs are kept quiet."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector import logs
from collector.cli.failures import tracebacks_wanted
from collector.fleet.opening import opened_fleet, stored_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.cli.verb import Asked
    from collector.fleet.interface import Fleet, StoredFiles
    from collector.mongo.client import Database
    from collector.settings import Settings


@asynccontextmanager
async def fleet_of(asked: Asked, purpose: str) -> AsyncIterator[Fleet]:
    """The API that COLLECTOR_URL names, else the database and lake of this machine."""
    where = asked.deployment()
    keep_quiet(where.settings)
    async with opened_fleet(where, purpose) as found:
        yield found


def files_of(asked: Asked) -> StoredFiles:
    """What files answer, here or through the API."""
    settings = asked.settings()
    keep_quiet(settings)
    return stored_files(settings)


@asynccontextmanager
async def opened(asked: Asked, purpose: str) -> AsyncIterator[Database]:
    """This machine's database at our schema, its clock read."""
    from collector.operations.opened_database import opened_database

    where = asked.here(purpose)
    keep_quiet(where.settings)
    async with opened_database(where, purpose) as database:
        yield database


def keep_quiet(settings: Settings) -> None:
    """The verb prints one line about an error; a log line before it would repeat it."""
    logs.configure("WARNING" if tracebacks_wanted() else "CRITICAL", settings.logging.format)
