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
from collector.exchanges.simulated.listing import listings
from collector.exchanges.simulated.server import SimulatedExchange
from collector.exchanges.simulated.windows import sliding_violations
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.series import Series
from collector.store.store import Store
from tests.acceptance.processes import Process, eventually, program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from collector.mongo.client import Database

DAY = 86_400_000
LEASE_MS = 1_500
LONG = os.environ.get("COLLECTOR_CHAOS") == "long"
"""`make chaos` runs the same tests at full length."""
KLINES = "/api/v3/klines"


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
        until = self.first_ms + days * DAY
        spec = JobSpec("simulated", "ohlcv_backfill", symbol, "1m", cursor=Cursor(until_ms=until))
        return (await self.queue.add(spec))[0]

    async def finished(self, job: Job, seconds: float = 90) -> Job:
        async def done() -> bool:
            return (await self.queue.get(job.id)).state is State.SUCCESS

        await eventually(done, f"{job.symbol} is complete", seconds)
        return await self.queue.get(job.id)

    async def reaches(self, job: Job, page: int, seconds: float = 60) -> None:
        async def there() -> bool:
            return (await self.queue.get(job.id)).cursor.page >= page

        await eventually(there, f"page {page}", seconds)

    def klines(self) -> list[Any]:
        return [entry for entry in self.exchange.journal.since() if entry.path == KLINES]

    # -- the invariants -----------------------------------------------------------------------

    def check_equal_to_the_truth(self, job: Job) -> None:
        """No bar lost, none twice, none wrong."""
        series = Series.of("simulated", str(job.symbol), "1m")
        until = job.cursor.until_ms or 0
        table = Store(self.root).rows(series, 0, until)
        assert not any(table.column("is_gap").to_pylist()), "bars are missing"
        truth = self.exchange.truth.bars(
            str(job.symbol).replace("/", ""), "1m", self.first_ms, until
        ).columns()
        names = {"ts": "ts", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume"}
        for ours, theirs in names.items():
            stored, true = table.column(ours).to_pylist(), list(truth[theirs])
            assert len(stored) == len(true), f"{len(stored)} bars stored, {len(true)} true"
            wrong = [
                at for at, pair in enumerate(zip(stored, true, strict=True)) if len(set(pair)) > 1
            ]
            assert not wrong, f"{ours} differs {len(wrong)} times, first at bar {wrong[0]}"

    def check_no_window_was_exceeded(self) -> None:
        times = self.exchange.journal.times()
        limit, period = self.limits.rate_limit, self.limits.rate_limit_period_ms
        assert sliding_violations(times, limit, period) == 0

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
    **more: str,
) -> AsyncIterator[Fleet]:
    """Everything but the workers; a test starts those itself."""
    chosen = limits or Limits(60, 1_000)
    now_ms = SystemClock().wall_ms()
    first_ms = now_ms - now_ms % DAY - days * DAY
    await ConnectorRegistry(database).ensure("simulated", chosen)
    async with SimulatedExchange(listed=listings(5, listed_ms=first_ms)) as exchange:
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
