"""The periodic duties of a worker: being seen, and what one worker does for all.

Counting, sweeping and purging concern the whole fleet, so the workers take turns at them. Counts
are made often, because every front end shows them.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collector import logs, metrics
from collector.connectors.job_figures import JobFigures
from collector.errors import DatabaseUnavailable
from collector.jobs.counting import EVERY_MS, JobCounting
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.purge import purge
from collector.jobs.sweep import sweep
from collector.jobs.turn import DutyTurn
from collector.store.room import disk_room
from workers.clock_watch import correct_dates
from workers.duty import Duty

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from collector.operations.wishes import WishKeeper
    from collector.publication.publisher import RedisPublisher

EVERY_SECONDS = 10.0
COUNT_SECONDS = 2.0
UPKEEP_MS = 7_000
"""Less than a worker's round, so that a single worker never finds the upkeep not due yet."""

_log = logs.get("workers.maintenance")


class Maintenance:
    """Each duty is idempotent: two workers that think it is their turn do no harm."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        concurrency: int,
        metrics_address: str | None = None,
        keep_deleted_days: float = 7.0,
        wishes: WishKeeper | None = None,
        *,
        data_root: str | None = None,
        publisher: RedisPublisher | None = None,
    ) -> None:
        self._database = database
        self._counting = JobCounting(database)
        self._upkeep = DutyTurn(database, "upkeep")
        self._figures = JobFigures(database)
        self._workers = LiveWorkers(database)
        self._worker_id = worker_id
        self._keep_deleted_days = keep_deleted_days
        self._wishes = wishes
        self._data_root = data_root
        """Whose disk is reported; None for none."""
        self._publisher = publisher
        self._redis_away_ms: int | None = None
        self._last_runs: dict[str, int] = {}
        self._about = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "concurrency": concurrency,
            "metrics": metrics_address,
        }

    def ran(self, exchange_id: str, at_ms: int) -> None:
        """Records when a run began; the next round reports it to the connector."""
        self._last_runs[exchange_id] = at_ms

    async def keep_going(self) -> None:
        """Until cancelled."""
        duty, recording = Duty("maintenance"), Duty("wishes")
        while True:
            with duty.tolerated():
                about = {**self._about, **self._disk(), "redis": self._redis()}
                await self._workers.be_seen(self._worker_id, about)
                await self._report_last_runs()
                await self.take_turn()
            if self._wishes is not None:
                with recording.tolerated():
                    await self._wishes.take_turn()
            await asyncio.sleep(_spread(EVERY_SECONDS))

    async def keep_counting(self) -> None:
        """Until cancelled."""
        duty = Duty("counting")
        while True:
            with duty.tolerated():
                await self.count()
            await asyncio.sleep(_spread(COUNT_SECONDS) + duty.pause())

    async def sign_off(self) -> None:
        try:
            await self._report_last_runs()
            await self._workers.leave(self._worker_id)
        except DatabaseUnavailable:
            return  # The entry expires by itself.

    async def count(self) -> None:
        """Counts all jobs for the whole fleet, when it is this worker's turn."""
        counts = await self._counting.take_turn(late_ms=EVERY_MS)
        if counts is not None:
            await self._figures.counted(counts.live, counts.active)

    async def take_turn(self) -> None:
        """What else is done for the whole fleet, when it is this worker's turn."""
        if not await self._upkeep.take():
            return
        await correct_dates(self._database)
        swept = await sweep(self._database)
        if swept:
            _log.info("swept", jobs=swept)
        purged = await purge(self._database, self._keep_deleted_days)
        if purged:
            _log.info("purged", jobs=purged)
        await self._upkeep.end({}, rest_ms=UPKEEP_MS)

    def _disk(self) -> dict[str, Any]:
        room = None if self._data_root is None else disk_room(self._data_root)
        if room is None:
            return {}
        metrics.DISK_FREE.set(room.free_bytes)
        metrics.DISK_TOTAL.set(room.total_bytes)
        return {"disk": asdict(room)}

    def _redis(self) -> dict[str, Any] | None:
        """Since when Redis takes nothing, and why; None when it does, or nothing is published."""
        shown = None if self._publisher is None else self._publisher.backoff_shown()["redis"]
        if shown is None or not shown["active"]:
            self._redis_away_ms = None
            return None
        self._redis_away_ms = self._redis_away_ms or self._database.server_clock.now_ms()
        return {"since": self._redis_away_ms, "error": shown["last_error_type"]}

    async def _report_last_runs(self) -> None:
        reported = dict(self._last_runs)
        await self._figures.ran(reported)
        # Runs since then, and those that could not be reported, wait for the next round.
        self._last_runs = {
            exchange_id: at_ms
            for exchange_id, at_ms in self._last_runs.items()
            if reported.get(exchange_id) != at_ms
        }


def _spread(seconds: float) -> float:
    """A pause of about so long, so that workers do not come in step."""
    return seconds * (0.75 + random.random() / 2)
