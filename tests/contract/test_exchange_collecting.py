"""From a job to bars on disk at every venue: worker, limiter and lake, through ccxt's own class."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.series import Series
from collector.store.store import Store
from tests.contract.ccxt_venue import MINUTE, Venue, says, serving
from tests.contract.dialects import DIALECTS, Dialect
from tests.contract.dialects.dialect import bar_at, dated
from workers.main import all_handlers
from workers.runtime import Worker, WorkerConfig
from workers.venues import Venues

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import web

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.contract.ccxt_venue import Turn

STEP = MINUTE.ms
AGE_BARS = 650
"""Every venue still has that many."""


def trading(venue: Venue, dialect: Dialect, first_ms: int) -> Turn:
    """Markets as recorded, and bars up to now."""

    async def turn(request: web.Request) -> web.StreamResponse:
        now_ms = SystemClock().wall_ms()
        if dialect.recording_for(request) != dialect.bars_file:
            body = venue.recorded(request)
        else:
            body = dialect.page(dialect.answer(request, first_ms, now_ms))
        return await says(200, body, headers=dated(now_ms))(request)

    return turn


async def finished(queue: JobQueue, job: Job) -> Job:
    async with asyncio.timeout(60):
        while (found := await queue.get(job.id)).state is not State.SUCCESS:
            assert found.state is not State.FAILED, found.document["stats"]
            await asyncio.sleep(0.02)
    return found


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
async def test_a_backfill_ends_with_the_venues_bars_in_the_lake(
    dialect: Dialect, database: Database, tmp_path: Path
) -> None:
    first_ms = MINUTE.floor(SystemClock().wall_ms()) - AGE_BARS * STEP
    until_ms = first_ms + (AGE_BARS - 20) * STEP
    exchange_id, series = dialect.exchange_id, Series.of(dialect.exchange_id, dialect.symbol, "1m")
    await ConnectorRegistry(database).ensure(exchange_id, Limits(10_000, 1_000))
    venue, store = Venue(exchange_id), Store(tmp_path)
    venue.always = trading(venue, dialect, first_ms)
    async with (
        serving(venue) as address,
        Limiter(database) as limiter,
        Venues(
            database,
            limiter,
            store,
            urls={exchange_id: address},
            patience=0.25,
            clock=SystemClock(),
        ) as venues,
    ):
        worker = Worker(
            database,
            limiter,
            all_handlers(venues, store, database),
            WorkerConfig("ann", poll_seconds=0.5),
        )
        running = asyncio.create_task(worker.run())
        try:
            spec = JobSpec(
                exchange_id,
                "ohlcv_backfill",
                symbol=dialect.symbol,
                timeframe="1m",
                cursor=Cursor(until_ms=until_ms),
            )
            queue = JobQueue(database)
            done = await finished(queue, (await queue.add(spec))[0])
            assert done.cursor.since_ms == until_ms
        finally:
            worker.drain()
            await asyncio.wait_for(running, 30)
    table = store.rows(series, 0, until_ms)
    columns = [table.column(name).to_pylist() for name in ("ts", "o", "h", "l", "c", "v", "is_gap")]
    expected = [(*bar_at(ts)[:6], False) for ts in range(first_ms, until_ms, STEP)]
    assert list(zip(*columns, strict=True)) == expected
