"""A worker inside the benchmark's own process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector.connectors.limiter import Limiter
from workers.handlers.registry import HandlerRegistry
from workers.runtime import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.mongo.client import Database
    from workers.handlers.registry import Handler
    from workers.runtime import WorkerConfig


@asynccontextmanager
async def working(
    database: Database,
    handlers: Mapping[str, Handler],
    config: WorkerConfig,
    *,
    watching: bool = True,
) -> AsyncIterator[Worker]:
    """A worker that runs until the block ends. Without `watching` it has no change stream."""
    async with Limiter(database) as limiter:
        worker = Worker(database, limiter, HandlerRegistry(handlers), config)
        if not watching:
            worker._wakeup.keep_watching = asyncio.Event().wait
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            try:
                yield worker
            finally:
                worker.drain()
