"""What statements cost mongod, as its own profiler saw them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database, Document

_ROOM_BYTES = 32 * 2**20
"""mongod's own collection of profiles is a megabyte, and forgets the oldest."""


class Profile:
    """Every statement on jobs since the profiler was switched on."""

    def __init__(self, database: Database) -> None:
        self._statements = database.raw["system.profile"]
        self._on_jobs = {"ns": f"{database.raw.name}.jobs"}
        self._read = 0

    async def new(self) -> list[Document]:
        """Those that came since the last look."""
        found = await self._statements.find(self._on_jobs).skip(self._read).to_list()
        self._read += len(found)
        return found


@asynccontextmanager
async def profiling(database: Database) -> AsyncIterator[Profile]:
    """The profiler, switched on while the block runs."""
    await database.raw.create_collection("system.profile", capped=True, size=_ROOM_BYTES)
    await database.raw.command("profile", 2)
    try:
        yield Profile(database)
    finally:
        await database.raw.command("profile", 0)
        await database.raw["system.profile"].drop()


@asynccontextmanager
async def profiled(database: Database) -> AsyncIterator[list[Document]]:
    """Fills the list, when the block ends, with every statement on jobs that was in it."""
    seen: list[Document] = []
    async with profiling(database) as profile:
        yield seen
        seen += await profile.new()
