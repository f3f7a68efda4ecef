"""The database that a use case works on.

With an address it is that one, and it must be migrated already: a fleet's database changes its
schema when an operator decides. Without one it is the embedded MongoDB of the home, joined when
another process runs it and else started for as long as it is needed; it is migrated on the way,
because no operator prepares it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from collector.errors import ConfigError, DatabaseUnavailable, HomeInUse
from collector.mongo.address import for_other_processes
from collector.mongo.client import Database
from collector.mongo.location import mongodb
from collector.mongo.schema import VERSION, current_version, require_current
from collector.operations.processes import command, last_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from collector.operations.deployment import Deployment
    from collector.settings import Settings

PATIENCE_SECONDS = 5.0
"""How long to wait for an embedded MongoDB that another process is starting or stopping."""

_LOOK_EVERY = 0.2
_POOL = 8


@asynccontextmanager
async def opened_database(where: Deployment, purpose: str) -> AsyncIterator[Database]:
    """The database at our schema, its clock read. `purpose` is shown to other processes."""
    settings = where.settings
    async with AsyncExitStack() as stack:
        uri, database = await _reached(stack, settings, f"collector {purpose}")
        if settings.mongo_uri is None and await current_version(database) < VERSION:
            await migrated(where, uri)
        await require_current(database)
        try:
            yield database
        finally:
            if database.written:
                await _recorded(database, settings)


@asynccontextmanager
async def unmigrated_database(
    where: Deployment, purpose: str
) -> AsyncIterator[tuple[str, Database]]:
    """Its address and the database as it is, whatever its schema, its clock read."""
    async with AsyncExitStack() as stack:
        yield await _reached(stack, where.settings, f"collector {purpose}")


async def _reached(outer: AsyncExitStack, settings: Settings, purpose: str) -> tuple[str, Database]:
    """A database that has answered, open until the stack is closed."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            async with AsyncExitStack() as stack:
                where = mongodb(settings.mongo_address, settings.home, purpose, patience=0)
                uri = await stack.enter_async_context(where)
                opening = Database(uri, settings.mongo_db, pool=_POOL)
                database = await stack.enter_async_context(opening)
                await database.reach(patience=0)
                await outer.enter_async_context(stack.pop_all())
                return uri, database
        except (HomeInUse, DatabaseUnavailable):
            # The embedded one may be starting, or its owner, another verb, has just ended.
            if settings.mongo_uri is not None or time.monotonic() > give_up_at:
                raise
            await asyncio.sleep(_LOOK_EVERY)


async def _recorded(database: Database, settings: Settings) -> None:
    # Opening a lake imports what a verb that changes nothing need not wait for.
    from collector.operations.wishes import record_changes
    from collector.store.root import storage_at

    await record_changes(database, storage_at(settings.data_root))


@contextmanager
def quietly() -> Iterator[None]:
    """Suppresses logs where errors are part of the answer."""
    logged = logging.getLogger().level
    logging.getLogger().setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logging.getLogger().setLevel(logged)


async def migrated(where: Deployment, uri: str) -> None:
    """Brings the embedded database to our schema, as `collector migrate up` does."""
    settings = where.settings
    own = {
        "COLLECTOR_HOME": str(settings.home),
        **for_other_processes(uri),
        "COLLECTOR_MONGO_DB": settings.mongo_db,
        "COLLECTOR_DATA": settings.data_root,
    }
    process = await asyncio.create_subprocess_exec(
        *command("migrations", "up", *where.arguments),
        env={**os.environ, **own},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await process.communicate()
    if process.returncode:
        raise ConfigError(f"preparing the embedded database failed: {last_line(output)}")
