"""A process that runs while the schema is raised leaves by itself.

It must not go on: it could undo what newer programs rely on. An emptied database, which has no
schema, ends nothing: it waits for being migrated or recovered.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from collector import logs
from collector.errors import DatabaseUnavailable, SchemaMismatch
from collector.mongo import schema

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from collector.mongo.client import Database

LOOK_EVERY_SECONDS = 5.0

_log = logs.get("collector.mongo")


@asynccontextmanager
async def leaving_newer_schema(
    database: Database, leave: Callable[[], None], *, every_seconds: float = LOOK_EVERY_SECONDS
) -> AsyncIterator[None]:
    """Calls `leave` when the schema becomes newer than this program.

    The body then ends in its own time, and SchemaMismatch says why.
    """
    newer: list[int] = []

    async def watch() -> None:
        newer.append(await _until_newer(database, every_seconds))
        _log.error("schema_newer", schema=newer[0], known=schema.VERSION)
        leave()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    if newer:
        raise SchemaMismatch(
            f"the database was brought to schema {newer[0]}, this program knows "
            f"{schema.VERSION}: it has ended its work and leaves; start the new version"
        )


async def _until_newer(database: Database, every_seconds: float) -> int:
    while True:
        with suppress(DatabaseUnavailable):  # An outage is logged by the client.
            found = await schema.current_version(database)
            if found > schema.VERSION:
                return found
        await asyncio.sleep(every_seconds)
