"""The database a verb works on, with logs kept quiet."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector import logs
from collector.cli.failures import tracebacks_wanted
from collector.operations.opened_database import opened_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.cli.verb import Asked
    from collector.mongo.client import Database
    from collector.settings import Settings


@asynccontextmanager
async def opened(asked: Asked, purpose: str) -> AsyncIterator[Database]:
    """The database at our schema, its clock read."""
    where = asked.deployment()
    keep_quiet(where.settings)
    async with opened_database(where, purpose) as database:
        yield database


def keep_quiet(settings: Settings) -> None:
    """The verb prints one line about an error; a log line before it would repeat it."""
    logs.configure("WARNING" if tracebacks_wanted() else "CRITICAL", settings.logging.format)
