"""The periodic duties of a worker: being seen, counting, sweeping."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from typing import TYPE_CHECKING

from collector import logs
from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseUnavailable, NotFound
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.sweep import sweep

if TYPE_CHECKING:
    from collector.mongo.client import Database

EVERY_SECONDS = 10.0

_log = logs.get("workers.maintenance")


class Maintenance:
    """Every worker does all of it; each duty is idempotent, so more workers do no harm."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        concurrency: int,
        metrics_address: str | None = None,
    ) -> None:
        self._database = database
        self._registry = ConnectorRegistry(database)
        self._workers = LiveWorkers(database)
        self._worker_id = worker_id
        self._about = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "concurrency": concurrency,
            "metrics": metrics_address,
        }

    async def keep_going(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._workers.be_seen(self._worker_id, self._about)
                await self._count_jobs()
                await self._sweep()
            except DatabaseUnavailable:
                pass  # Said once by mongo.client; the next round does it.
            await asyncio.sleep(EVERY_SECONDS * (0.75 + random.random() / 2))

    async def say_goodbye(self) -> None:
        try:
            await self._workers.leave(self._worker_id)
        except DatabaseUnavailable:
            return  # The entry expires by itself.

    async def _count_jobs(self) -> None:
        for connector in await self._registry.all():
            try:
                await self._registry.update_job_counts(connector.exchange_id)
            except NotFound:
                continue  # Deleted since.

    async def _sweep(self) -> None:
        swept = await sweep(self._database)
        if swept:
            _log.info("swept", jobs=swept)
