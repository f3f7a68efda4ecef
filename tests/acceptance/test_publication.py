"""Redis killed, a worker killed, a publisher stopped past its lease: every bar once, in order."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from tests.support.cuttable_link import cuttable_link
from tests.support.fleet import LEASE_MS, LONG, PAGES_OF_100, fleet
from tests.support.redis_server import Subscriber
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.fleet import Fleet
    from tests.support.redis_server import RedisServer

CHANNEL = "simulated:ohlcv"
SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT")
OUTAGES, DAYS = (5, 20) if LONG else (1, 5)


class Series:
    """The incremental jobs of a fleet, days behind, and what subscribers received of them."""

    def __init__(self, fleet: Fleet, received: Subscriber, jobs: list[Job]) -> None:
        self._fleet = fleet
        self._received = received
        self._jobs = jobs

    async def jobs(self) -> list[Job]:
        return [await self._fleet.queue.get(job.id) for job in self._jobs]

    async def until_all(self, what: str, satisfied: Callable[[Job], bool]) -> list[Job]:
        async def there() -> bool:
            return all(satisfied(job) for job in await self.jobs())

        await until(there, what, 120)
        return await self.jobs()

    async def move_on(self, pages: int, what: str) -> None:
        """Returns when every job has stored so many more pages."""
        pages_now = {job.id: job.cursor.page for job in await self.jobs()}
        await self.until_all(what, lambda job: job.cursor.page >= pages_now[job.id] + pages)

    async def check(self) -> None:
        """When everything is collected: every bar was published, once, in order."""
        now_ms = self._fleet.exchange.now_ms()
        lately = now_ms - 120_000
        await self.until_all("everything is stored", lambda job: job.cursor.since_ms > lately)
        await self.until_all(
            "everything is published",
            lambda job: job.document["published_ts"] >= lately,
        )
        for job in await self.jobs():
            self._check_published(job)

    def _check_published(self, job: Job) -> None:
        times = self._received.open_times(CHANNEL, str(job.symbol))
        bars = self._fleet.exchange.truth.bars(
            str(job.symbol).replace("/", ""),
            "1m",
            self._fleet.first_ms,
            times[-1] + 60_000,
        )
        assert times == list(bars.columns()["ts"])
        assert times[-1] >= job.document["published_ts"] - 120_000


async def test_every_bar_is_published_once_and_in_order_through_an_outage(
    redis_server: RedisServer, database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        # Workers reach Redis by a wire that is mended when the subscription stands again: Redis
        # stores no messages, so whoever comes later misses them.
        wire = await stack.enter_async_context(cuttable_link(redis_server.port))
        more = {"COLLECTOR_REDIS_URL": f"redis://127.0.0.1:{wire.port}/0", **PAGES_OF_100}
        site = await stack.enter_async_context(
            fleet(database, mongo_uri, tmp_path, limits=Limits(40, 1_000), days=DAYS, **more)
        )
        received = await stack.enter_async_context(Subscriber(redis_server, [CHANNEL]))
        behind = Cursor(since_ms=site.first_ms)
        specs = [JobSpec("simulated", "ohlcv_incremental", s, "1m", cursor=behind) for s in SYMBOLS]
        series = Series(site, received, [(await site.queue.add(spec))[0] for spec in specs])
        killed = await stack.enter_async_context(site.worker())
        stopped = await stack.enter_async_context(site.worker())
        await until(lambda: len(received.messages) > 20, "bars are published")
        for _ in range(OUTAGES):
            await wire.cut()
            await redis_server.kill()
            await received.interrupted()
            await series.move_on(3, "the collecting goes on without Redis")
            killed.signal(signal.SIGKILL)
            stopped.signal(signal.SIGSTOP)
            killed = await stack.enter_async_context(site.worker())
            await series.move_on(3, f"another worker takes over after {LEASE_MS} ms")
            await redis_server.start()
            await received.listening()
            await wire.mend()
            stopped.signal(signal.SIGCONT)
            await series.move_on(3, "all of it goes on")
        await series.check()
