"""A whole collector in this process: worker, store and simulated exchange on a real mongod."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.pipeline.evidence import Silence
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from collector.store.store import Store
from tests.support.counting import with_count
from tests.support.until import until, until_job
from workers.all_handlers import all_handlers
from workers.runtime import Worker, WorkerConfig
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from collector.history.terms import HistoryTerms
    from collector.mongo.client import Database
    from collector.publication.publisher import RedisPublisher
    from collector.store.copies import Copies

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
    venues: Venues
    first_ms: int
    started_ms: int
    series: Series = field(default_factory=lambda: Series.of("simulated", SYMBOL, "1m"))

    async def backfill(self, until_ms: int, **fields: Any) -> Job:
        cursor = Cursor(until_ms=until_ms)
        return await self.job("ohlcv_backfill", cursor=cursor, **fields)

    async def job(self, kind: str, **fields: Any) -> Job:
        spec = JobSpec("simulated", kind, **{"symbol": SYMBOL, "timeframe": "1m", **fields})
        return (await self.queue.add(spec))[0]

    async def until(self, job: Job, satisfied: Callable[[Job], bool], seconds: float = 120) -> Job:
        return await until_job(self.queue, job, satisfied, seconds)

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
    copies: Copies | None = None,
    listed_ms: int | None = None,
    history: HistoryTerms | None = None,
    publisher: RedisPublisher | None = None,
) -> AsyncIterator[Collecting]:
    """A worker at work on a simulated exchange whose markets are `days` old, or listed then."""
    now_ms = SystemClock().wall_ms()
    first_ms = now_ms - now_ms % DAY - days * DAY if listed_ms is None else listed_ms
    registry = ConnectorRegistry(database)
    await registry.ensure("simulated", limits or Limits(100_000, 1_000))
    store = Store(root, copies=copies)
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
        chosen = config or WorkerConfig("ann", poll_seconds=0.5)
        handlers = with_count(
            all_handlers(
                venues,
                store,
                database,
                history=history,
                until_idle=chosen.until_idle,
                publisher=publisher,
            )
        )
        worker = Worker(database, limiter, handlers, chosen, publisher=publisher)
        running = asyncio.create_task(worker.run())
        try:
            yield Collecting(
                *(database, exchange, store, worker, JobQueue(database), registry, venues),
                first_ms,
                now_ms,
            )
        finally:
            worker.drain()
            await asyncio.wait_for(running, 120)


async def scanned(c: Collecting) -> None:
    """A new job runs by itself, one that has run before is started."""
    scan = await c.job("gap_scan", symbol=None, timeframe=None)
    runs = scan.document["stats"]["success"]
    if runs:
        await c.queue.run(scan.id)
    await c.until(scan, lambda job: job.document["stats"]["success"] > runs)


def put(c: Collecting, from_ms: int, to_ms: int) -> None:
    """Bars as an earlier run left them."""
    batch = CandleBatch.of(c.truth(from_ms, to_ms))
    c.store.append_page(c.series, batch, Interval(from_ms, to_ms), fence=1, known_at=1)


async def gap_jobs_at_rest(c: Collecting) -> list[Job]:
    """The gap jobs, once each has done what it could for now. There is at least one."""

    async def at_rest() -> list[Job]:
        jobs = await c.queue.find({"type": "gap_backfill"})
        return jobs if all(map(_is_at_rest, jobs)) else []

    at_last: list[Job] = await until(at_rest, "every gap job is at rest")
    return at_last


async def heard_earlier(c: Collecting, job: Job, ms: int) -> None:
    """As if the silences of the job's last run had been heard that much earlier."""
    progress = (await c.queue.get(job.id)).document["progress"]
    earlier = []
    for each in (Silence(*numbers) for numbers in progress["silences"]):
        due_ms = max(1, each.due_ms - ms) if each.due_ms else 0
        first_at = max(1, each.first_at - ms)
        past = replace(each, first_at=first_at, last_at=max(1, each.last_at - ms), due_ms=due_ms)
        earlier.append(past.document())
    await c.database.jobs.update_one({"_id": job.id}, {"$set": {"progress.silences": earlier}})


async def asked_again_after(c: Collecting, job: Job, ms: int) -> None:
    """Runs a job that waits, as if its silences had been heard that much earlier."""
    await heard_earlier(c, job, ms)
    await c.queue.run(job.id)


def _is_at_rest(job: Job) -> bool:
    return job.state in (State.IDLE, State.SUCCESS)


async def no_more_gap_jobs(c: Collecting) -> None:
    """Returns once every gap job has done what it could and is gone."""

    async def none_is_left() -> bool:
        # Not by an index: a job that moves in it at this moment may be found nowhere.
        wanted = {"type": "gap_backfill", "status": {"$ne": "deleted"}}
        return not await c.database.jobs.find(wanted)

    await until(none_is_left, "no gap job is left")
