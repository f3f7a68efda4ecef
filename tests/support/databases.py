"""Databases at the current schema, used again: emptying one takes a fiftieth of migrating one.

A test gets the one that has rested longest, so that a late write of an earlier test has arrived and
is removed before another test could see it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.mongo.client import Database
from migrations import runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RESTING = 4


def new_name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"


class Shelf:
    """The databases of one mongod that are not in use."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._names: deque[str] = deque()
        self._as_migrated: list[dict[str, Any]] = []

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        """An empty one at the current schema."""
        used = len(self._names) >= RESTING
        name = self._names.popleft() if used else new_name()
        async with Database(self._uri, name) as database:
            await database.read_server_clock()
            if used:
                await self._empty(database)
            else:
                await runner.up(database)
                self._as_migrated = await database.raw["system"].find().to_list()
            yield database
        self._names.append(name)

    async def _empty(self, database: Database) -> None:
        names = await database.raw.list_collection_names()
        await asyncio.gather(*(database.raw[name].delete_many({}) for name in names))
        await database.raw["system"].insert_many(self._as_migrated)
