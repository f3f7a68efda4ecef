"""A worker process of our own, for when no other worker is running."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from collector.errors import CollectorError, ConfigError, StoreError
from collector.jobs.live_workers import LiveWorkers
from collector.operations.processes import command, die_with_parent

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment

DRAIN_SECONDS = 20.0


_KINDS = {kind.exit_name: kind for kind in (ConfigError, StoreError, CollectorError)}


class OwnWorker:
    """`python -m workers --until-idle` for one exchange, as long as no other worker is alive."""

    def __init__(self, where: Deployment, database: Database, exchange_id: str) -> None:
        self.started = False
        self._settings = where.settings
        chosen = ["--until-idle", "--exchange", exchange_id, *where.arguments]
        self._command = command("workers", *chosen)
        self._workers = LiveWorkers(database)
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """It finishes its current page and ends."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), DRAIN_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def see_to_it(self) -> None:
        """Starts it unless a worker is running. Raises the error that it failed with."""
        if self._process is not None:
            if self._process.returncode is None:
                return
            if self._process.returncode:
                raise self._failure()
        if not await self._workers.all():
            self._process = await self._start()
            self.started = True

    async def _start(self) -> asyncio.subprocess.Process:
        own = {
            "COLLECTOR_HOME": str(self._settings.home),
            "COLLECTOR_MONGO_DB": self._settings.mongo_db,
            "COLLECTOR_DATA": self._settings.data_root,
        }
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            return await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, **own},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                # Its own session: Ctrl-C in the terminal is ours to pass on.
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )

    @property
    def _log(self) -> Path:
        return self._settings.home / "logs" / "datalayer-worker.log"

    def _failure(self) -> CollectorError:
        """Its last line is `E_NAME: why`, unless something unexpected happened."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1] if lines else "it printed nothing"
        name, _, why = last.partition(": ")
        kind = _KINDS.get(name, CollectorError)
        return kind(f"the worker ended: {why if name in _KINDS else last} ({self._log})")
