"""The database a verb works on.

With an address it is that one, and it must be migrated already: a fleet's database changes its
schema when an operator says so. Without one it is the embedded MongoDB of the home, joined when
somebody runs it and else started for the length of the verb; nobody else could have prepared that
one, so it is migrated on the way.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from collector import logs
from collector.cli.demo_settings import demo_config
from collector.cli.failures import tracebacks_wanted
from collector.cli.processes import command
from collector.errors import ConfigError, DatabaseUnavailable, HomeInUse
from collector.mongo.client import Database
from collector.mongo.location import mongodb
from collector.mongo.schema import VERSION, current_version, require_current

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.cli.verb import Asked
    from collector.settings import Settings

PATIENCE_SECONDS = 5.0
"""How long to wait for an embedded MongoDB that another process is starting or stopping."""

_LOOK_EVERY = 0.2
_POOL = 8


@asynccontextmanager
async def opened(asked: Asked, purpose: str) -> AsyncIterator[Database]:
    """The database at our schema, its clock read."""
    settings = asked.settings()
    # The verb's own line says what is wrong; a log line before it would say it twice.
    logs.configure("WARNING" if tracebacks_wanted() else "CRITICAL", settings.logging.format)
    async with AsyncExitStack() as stack:
        uri, database = await _reached(stack, settings, f"collector {purpose}")
        if settings.mongo_uri is None and await current_version(database) < VERSION:
            await migrated(asked, settings, uri)
        await require_current(database)
        yield database


async def _reached(outer: AsyncExitStack, settings: Settings, purpose: str) -> tuple[str, Database]:
    """A database that has answered, open until the stack is closed."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            async with AsyncExitStack() as stack:
                where = mongodb(settings.mongo_uri, settings.home, purpose)
                uri = await stack.enter_async_context(where)
                opening = Database(uri, settings.mongo_db, pool=_POOL)
                database = await stack.enter_async_context(opening)
                await database.read_server_clock()
                await outer.enter_async_context(stack.pop_all())
                return uri, database
        except (HomeInUse, DatabaseUnavailable):
            # The embedded one may be on its way up, or its owner, another verb, has just ended.
            if settings.mongo_uri is not None or time.monotonic() > give_up_at:
                raise
            await asyncio.sleep(_LOOK_EVERY)


async def migrated(asked: Asked, settings: Settings, uri: str) -> None:
    """Brings the embedded database to our schema, as `collector migrate up` does."""
    config = demo_config(settings.home) if asked.demo else asked.config
    arguments = [] if config is None else ["--config", str(config)]
    own = {
        "COLLECTOR_HOME": str(settings.home),
        "COLLECTOR_MONGO_URI": uri,
        "COLLECTOR_MONGO_DB": settings.mongo_db,
    }
    process = await asyncio.create_subprocess_exec(
        *command("migrations", "up", *arguments),
        env={**os.environ, **own},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode:
        raise ConfigError(f"preparing the embedded database failed: {said.decode().strip()}")
