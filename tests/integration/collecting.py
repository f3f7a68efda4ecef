"""A whole collector in this process: worker, store and simulated exchange on a real mongod."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.simulated.listing import listings
from collector.exchanges.simulated.server import SimulatedExchange
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.series import Series
from collector.store.store import Store
from workers.main import all_handlers
from workers.runtime import Worker, WorkerConfig
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from collector.mongo.client import Database

MINUTE = 60_000
DAY = 86_400_000
SYMBOL = "BTC/USDT"


@dataclass
class Collecting:
    """What a test holds in its hands."""

    database: Database
    exchange: SimulatedExchange
    store: Store
    worker: Worker
    queue: JobQueue
    registry: ConnectorRegistry
    first_ms: int
    series: Series = field(default_factory=lambda: Series.of("simulated", SYMBOL, "1m"))

    async def backfill(self, until_ms: int, **fields: Any) -> Job:
        cursor = Cursor(until_ms=until_ms)
        return await self.job("ohlcv_backfill", cursor=cursor, **fields)

    async def job(self, kind: str, **fields: Any) -> Job:
        spec = JobSpec("simulated", kind, **{"symbol": SYMBOL, "timeframe": "1m", **fields})
        return (await self.queue.add(spec))[0]

    async def until(self, job: Job, satisfied: Callable[[Job], bool], seconds: float = 30) -> Job:
        async with asyncio.timeout(seconds):
            while not satisfied(found := await self.queue.get(job.id)):
                await asyncio.sleep(0.01)
        return found

    def stored(self, from_ms: int, to_ms: int, series: Series | None = None) -> list[Any]:
        """The real bars of the lake, as rows of (ts, o, h, l, c, v)."""
        table = self.store.rows(series or self.series, from_ms, to_ms)
        columns = [table.column(name).to_pylist() for name in ("ts", "o", "h", "l", "c", "v")]
        gaps = table.column("is_gap").to_pylist()
        rows = zip(*columns, strict=True)
        return [row for row, gap in zip(rows, gaps, strict=True) if not gap]

    def truth(self, from_ms: int, to_ms: int, symbol: str = "BTCUSDT", frame: str = "1m") -> Any:
        columns = self.exchange.truth.bars(symbol, frame, from_ms, to_ms).columns()
        names = ("ts", "open", "high", "low", "close", "volume")
        return list(zip(*(columns[name] for name in names), strict=True))

    def journal(self, path: str = "/api/v3/klines") -> list[Any]:
        return [entry for entry in self.exchange.journal.since() if entry.path == path]


@asynccontextmanager
async def collecting(
    database: Database,
    root: Path,
    *,
    limits: Limits | None = None,
    days: int = 3,
    faults: tuple[Any, ...] = (),
    config: WorkerConfig | None = None,
) -> AsyncIterator[Collecting]:
    """A worker at work on a simulated exchange whose markets are `days` old."""
    now_ms = SystemClock().wall_ms()
    first_ms = now_ms - now_ms % DAY - days * DAY
    registry = ConnectorRegistry(database)
    await registry.ensure("simulated", limits or Limits(100_000, 1_000))
    store = Store(root)
    async with (
        SimulatedExchange(listed=listings(5, listed_ms=first_ms), faults=faults) as exchange,
        Limiter(database) as limiter,
        Venues(
            database,
            limiter,
            store,
            urls={"simulated": exchange.url},
            patience=0.25,
            clock=SystemClock(),
        ) as venues,
    ):
        worker = Worker(
            database,
            limiter,
            all_handlers(venues, store, database),
            config or WorkerConfig("ann", poll_seconds=0.5),
        )
        running = asyncio.create_task(worker.run())
        try:
            yield Collecting(
                database, exchange, store, worker, JobQueue(database), registry, first_ms
            )
        finally:
            worker.drain()
            await asyncio.wait_for(running, 30)


async def scanned(c: Collecting) -> None:
    """A new job runs by itself, one that has run before is told to."""
    scan = await c.job("gap_scan", symbol=None, timeframe=None)
    runs = scan.document["stats"]["success"]
    if runs:
        await c.queue.run(scan.id)
    await c.until(scan, lambda job: job.document["stats"]["success"] > runs)


async def no_more_gap_jobs(c: Collecting) -> None:
    """Returns once every gap job has done what it could and is gone."""
    async with asyncio.timeout(30):
        while await c.queue.find({"type": "gap_backfill"}):
            await asyncio.sleep(0.02)
