"""Which form a fleet has: an API that was named, else this machine's own database and lake."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector.fleet.interface import Fleet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.fleet.interface import StoredFiles
    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment
    from collector.settings import Settings


@asynccontextmanager
async def opened_fleet(where: Deployment, purpose: str) -> AsyncIterator[Fleet]:
    """A fleet for as long as the block lasts. `purpose` is shown to other processes."""
    # Each form imports what the other need not wait for.
    settings = where.settings
    if settings.url is not None:
        from collector.fleet.remote.connectors import RemoteConnectors
        from collector.fleet.remote.jobs import RemoteJobs
        from collector.fleet.remote.markets import RemoteMarkets
        from collector.fleet.remote.overview import RemoteOverview
        from collector.remote.api_client import ApiAddress

        async with ApiAddress.of(settings.url, settings.token).opened() as api:
            yield Fleet(
                RemoteConnectors(api), RemoteJobs(api), RemoteMarkets(api), RemoteOverview(api)
            )
        return
    from collector.operations.opened_database import opened_database

    async with opened_database(where, purpose) as database:
        yield local_fleet(database, settings)


def local_fleet(database: Database, settings: Settings) -> Fleet:
    """A fleet by its own database."""
    from collector.fleet.local.connectors import LocalConnectors
    from collector.fleet.local.jobs import LocalJobs
    from collector.fleet.local.markets import LocalMarkets
    from collector.fleet.local.overview import LocalOverview

    return Fleet(
        LocalConnectors(database),
        LocalJobs(database),
        LocalMarkets(database),
        LocalOverview(database, settings),
    )


def stored_files(settings: Settings) -> StoredFiles:
    """What files answer; no database is opened for it."""
    if settings.url is not None:
        from collector.fleet.remote.files import RemoteFiles
        from collector.remote.api_client import ApiAddress

        return RemoteFiles(ApiAddress.of(settings.url, settings.token))
    from collector.fleet.local.files import LocalFiles

    return LocalFiles(settings)
