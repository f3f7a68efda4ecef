"""Accidents of a few seconds under forty live jobs and a backfill: they pass, and all goes on."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.simulated.faults.answers import Gateway
from tests.acceptance.full_disk import filled, said_to_be_full, small_disk
from tests.acceptance.job_diary import JobDiary
from tests.acceptance.live_jobs import WITHIN_SECONDS, LiveJobs
from tests.support.fleet import LONG, PAGES_OF_100, fleet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.fleet import Fleet

LIVE = 40
GATEWAY_SECONDS, FULL_SECONDS = 8, 5
LIMITS = Limits(30, 1_000)


@contextmanager
def gateway_fails(f: Fleet, fault: Gateway) -> Iterator[None]:
    (number,) = f.exchange.faults.add(fault)
    yield
    f.exchange.faults.remove(number)


async def outlive(
    f: Fleet, accident: AbstractContextManager[None], seconds: float, worker: str = "workers"
) -> None:
    """Forty live jobs come due in the middle of it, and all is well again by itself."""
    diary = await JobDiary.begin(f.database)
    async with f.worker(worker), f.worker(worker):
        history = await f.backfill(days=10)
        await f.reaches(history, 10)
        with accident:
            live = await LiveJobs.add(f, LIVE)
            await asyncio.sleep(seconds)
            assert [job.cursor for job in await live.now() if job.cursor.page] == []
        await live.go_on()
        done = await f.finished(history, WITHIN_SECONDS)
    await diary.check()
    await diary.check_no_kill_was_counted()
    await live.check_equal_to_the_truth()
    f.check(done)


@pytest.mark.parametrize(
    "fault", [Gateway(), Gateway(body="empty"), Gateway(status=502)] if LONG else [Gateway()]
)
async def test_a_gateway_that_knows_of_no_exchange_stops_nobody(
    database: Database, mongo_uri: str, tmp_path: Path, fault: Gateway
) -> None:
    async with fleet(
        database, mongo_uri, tmp_path, limits=LIMITS, markets=LIVE + 1, **PAGES_OF_100
    ) as f:
        await outlive(f, gateway_fails(f, fault), GATEWAY_SECONDS)
        struck = [entry for entry in f.exchange.journal.since() if "gateway" in entry.faults]
        assert len(struck) >= LIVE // 4, "hardly anybody met the gateway"


@pytest.mark.parametrize("told", [False, True] if LONG else [False])
async def test_a_disk_that_is_full_for_a_while_stops_nobody(
    database: Database, mongo_uri: str, tmp_path: Path, told: bool
) -> None:
    place, flag = tmp_path / "disk", tmp_path / "full"
    with small_disk(place, megabytes=64) as mounted:
        real = mounted and not told
        async with fleet(
            database,
            mongo_uri,
            place / "lake",
            limits=LIMITS,
            markets=LIVE + 1,
            FULL_DISK_FLAG=str(flag),
            **PAGES_OF_100,
        ) as f:
            accident = filled(place) if real else said_to_be_full(flag)
            worker = "workers" if real else "tests.acceptance.full_disk_worker"
            await outlive(f, accident, FULL_SECONDS, worker)
