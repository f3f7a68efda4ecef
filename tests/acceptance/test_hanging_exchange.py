"""An exchange that answers nobody, beside a healthy one, in a worker with few places."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.simulated.faults.answers import Hang
from collector.simulated.server import SimulatedExchange
from collector.simulated.windows import sliding_violations
from tests.acceptance.job_diary import JobDiary
from tests.acceptance.live_jobs import WITHIN_SECONDS, LiveJobs
from tests.support.fleet import LONG, fleet

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

HEALTHY = "binance"
"""Whose language the simulated exchange speaks."""
EVERY_RUN_ASKS = "trades_incremental"
PLACES = 8
HANGING_JOBS, HEALTHY_JOBS = 3 * PLACES, PLACES // 2
PERIOD_SECONDS = 3
PERIODS = 10 if LONG else 2
"""So long the one exchange hangs; in the short form less than a request waits for its answer."""
KEPT = 0.3
"""Of the requests of a period; in a worker without a place to spare hardly one is left."""


async def test_a_hanging_exchange_does_not_hold_up_another(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    limits = Limits(60, 1_000)
    few = {"COLLECTOR_WORKER__CONCURRENCY": str(PLACES)}
    async with (
        fleet(database, mongo_uri, tmp_path, limits=limits, markets=HANGING_JOBS, **few) as f,
        SimulatedExchange(listed=f.exchange.truth.listings) as healthy,
    ):
        urls = {"simulated": f.exchange.url, HEALTHY: healthy.url}
        f.environment["COLLECTOR_EXCHANGE_URLS"] = json.dumps(urls)
        await f.registry.ensure(HEALTHY, limits)
        diary = await JobDiary.begin(database)
        hanging = await LiveJobs.add(f, HANGING_JOBS, kind=EVERY_RUN_ASKS)
        others = await LiveJobs.add(f, HEALTHY_JOBS, exchange_id=HEALTHY, kind=EVERY_RUN_ASKS)
        async with f.worker():
            await hanging.run_again()
            await others.run_again()
            (before,) = await requests_of(healthy, periods=1)
            (number,) = f.exchange.faults.add(Hang())
            history = await f.backfill(days=5)
            beside = await requests_of(healthy, PERIODS)
            f.exchange.faults.remove(number)
            assert min(beside) >= KEPT * before, f"{before} requests a period, then {beside}"
            await hanging.run_again()
            await others.keep_their_cadence(runs=3)
            done = await f.finished(history, WITHIN_SECONDS)
        await diary.check()
        await diary.check_no_kill_was_counted()
        f.check(done)
        times = healthy.journal.times()
        assert sliding_violations(times, limits.rate_limit, limits.rate_limit_period_ms) == 0


async def requests_of(exchange: SimulatedExchange, periods: int) -> list[int]:
    """How many requests arrived in each of the next periods."""
    counts = []
    for _ in range(periods):
        before = len(exchange.journal.since())
        await asyncio.sleep(PERIOD_SECONDS)
        counts.append(len(exchange.journal.since()) - before)
    return counts
