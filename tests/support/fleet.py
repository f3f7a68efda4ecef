"""A fleet of worker processes on a simulated exchange, and what must hold whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.series import Series
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from collector.simulated.windows import max_in_window, sliding_violations
from tests.support.processes import Process, program
from tests.support.stored_series import check_stored
from tests.support.until import until_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from collector.mongo.client import Database

DAY = 86_400_000
LEASE_MS = 1_500
LONG = os.environ.get("COLLECTOR_CHAOS") == "long"
"""`make chaos` runs the same tests at full length."""
KLINES = "/api/v3/klines"
PAGES_OF_100 = {"COLLECTOR_API__ADAPTER": "simulated", "COLLECTOR_API__PAGE_SIZE": "100"}
"""Many requests, few bars: for backfills that should last."""


@dataclass
class Fleet:
    """The exchange, the lake and the database that all workers share."""

    database: Database
    exchange: SimulatedExchange
    root: Path | str
    environment: dict[str, str]
    limits: Limits
    first_ms: int

    @property
    def queue(self) -> JobQueue:
        return JobQueue(self.database)

    @property
    def registry(self) -> ConnectorRegistry:
        return ConnectorRegistry(self.database)

    def worker(
        self, module: str = "workers", *arguments: str
    ) -> AbstractAsyncContextManager[Process]:
        return program(module, *arguments, **self.environment)

    async def backfill(self, symbol: str = "BTC/USDT", days: int = 30) -> Job:
        until_ms = self.first_ms + days * DAY
        spec = JobSpec(
            "simulated", "ohlcv_backfill", symbol, "1m", cursor=Cursor(until_ms=until_ms)
        )
        return (await self.queue.add(spec))[0]

    async def finished(self, job: Job, seconds: float = 180) -> Job:
        return await until_job(self.queue, job, lambda job: job.state is State.SUCCESS, seconds)

    async def reaches(self, job: Job, page: int, seconds: float = 120) -> None:
        await until_job(self.queue, job, lambda job: job.cursor.page >= page, seconds)

    def klines(self) -> list[Any]:
        return [entry for entry in self.exchange.journal.since() if entry.path == KLINES]

    # -- the invariants -----------------------------------------------------------------------

    def check(self, *done: Job) -> None:
        """All that must hold of the lake and of the exchange once these backfills are done."""
        for job in done:
            self.check_equal_to_the_truth(job)
        self.check_no_window_was_exceeded()
        self.check_no_half_written_file_is_visible()

    def check_equal_to_the_truth(self, job: Job) -> None:
        """No bar lost, none twice, none wrong."""
        series = Series.of(job.exchange_id, str(job.symbol), "1m")
        until_ms = job.cursor.until_ms or 0
        check_stored(self.root, series, self.exchange.truth, self.first_ms, until_ms)

    def check_no_window_was_exceeded(self) -> None:
        times = self.exchange.journal.times()
        limit, period = self.limits.rate_limit, self.limits.rate_limit_period_ms
        fullest = max_in_window(times, period)
        assert sliding_violations(times, limit, period) == 0, f"{fullest} in a period of {limit}"

    def check_no_half_written_file_is_visible(self) -> None:
        for path in Path(self.root).rglob("*.parquet"):
            assert path.read_bytes()[-4:] == b"PAR1", f"{path} is torn"


@asynccontextmanager
async def fleet(
    database: Database,
    mongo_uri: str,
    root: Path | str,
    *,
    limits: Limits | None = None,
    days: int = 40,
    markets: int = 5,
    **more: str,
) -> AsyncIterator[Fleet]:
    """Everything but the workers; a test starts those itself."""
    chosen = limits or Limits(60, 1_000)
    now_ms = SystemClock().wall_ms()
    first_ms = now_ms - now_ms % DAY - days * DAY
    await ConnectorRegistry(database).ensure("simulated", chosen)
    async with SimulatedExchange(listed=listings(markets, listed_ms=first_ms)) as exchange:
        environment = {
            "COLLECTOR_MONGO_URI": mongo_uri,
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(root),
            "COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": exchange.url}),
            "COLLECTOR_WORKER__LEASE_TTL_MS": str(LEASE_MS),
            **more,
        }
        yield Fleet(database, exchange, root, environment, chosen, first_ms)


class CursorWatch:
    """Sees every cursor a job ever had and remembers whether one went back."""

    def __init__(self, fleet: Fleet, job: Job) -> None:
        self._fleet = fleet
        self._job = job
        self.seen: list[int] = []

    async def watch(self) -> None:
        only_ours = [{"$match": {"documentKey._id": self._job.id}}]
        jobs = self._fleet.database.raw["jobs"]
        async with await jobs.watch(only_ours, full_document="updateLookup") as stream:
            while True:
                change = await stream.try_next()
                if change is not None and change.get("fullDocument"):
                    self.seen.append(change["fullDocument"]["cursor"]["since_ms"])

    def check(self) -> None:
        assert self.seen == sorted(self.seen), "the cursor went back"


@asynccontextmanager
async def watched(fleet: Fleet, job: Job) -> AsyncIterator[CursorWatch]:
    watch = CursorWatch(fleet, job)
    task = asyncio.create_task(watch.watch())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
