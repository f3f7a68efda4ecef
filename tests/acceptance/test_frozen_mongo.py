"""mongod stands still for a while and goes on, under backfills and live jobs of two workers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.lease_terms import TTL_MS
from tests.acceptance.job_diary import JobDiary
from tests.acceptance.live_jobs import WITHIN_SECONDS, LiveJobs
from tests.support.fleet import LEASE_MS, LONG, PAGES_OF_100, fleet
from tests.support.frozen import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from collector.mongo.embedded import EmbeddedMongo

SECONDS_AND_LEASES = (
    [(seconds, lease_ms) for seconds in (5, 13, 30) for lease_ms in (TTL_MS, LEASE_MS)]
    if LONG
    else [(13, TTL_MS), (5, LEASE_MS)]
)
"""13 s is longer than the driver waits for an answer, 5 s longer than the short lease."""


@pytest.mark.parametrize(("seconds", "lease_ms"), SECONDS_AND_LEASES)
async def test_a_frozen_mongod_costs_the_time_it_is_frozen_and_nothing_else(
    own_mongo: EmbeddedMongo, own_database: Database, tmp_path: Path, seconds: int, lease_ms: int
) -> None:
    settings = {"COLLECTOR_WORKER__LEASE_TTL_MS": str(lease_ms), **PAGES_OF_100}
    limits = Limits(30, 1_000)
    async with fleet(
        own_database, own_mongo.uri, tmp_path / "lake", limits=limits, markets=10, **settings
    ) as f:
        diary = await JobDiary.begin(own_database)
        backfills = [await f.backfill(symbol, days=6) for symbol in ("BTC/USDT", "ETH/USDT")]
        live = await LiveJobs.add(f, 8)
        async with f.worker() as one, f.worker() as two:
            await live.go_on()
            await f.reaches(backfills[0], 20)
            async with frozen(own_database):
                await asyncio.sleep(seconds)
            await live.go_on()
            done = [await f.finished(job, WITHIN_SECONDS) for job in backfills]
            assert one.running, one.said
            assert two.running, two.said
        await diary.check()
        await diary.check_no_kill_was_counted()
        await live.check_equal_to_the_truth()
        f.check(*done)
