"""Backfills under worker deaths, pauses and bans: equal to the truth, and no limit broken."""

from __future__ import annotations

import random
import signal
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.durations import MINUTE_MS
from collector.jobs.states import State
from collector.simulated.faults.answers import Ban
from collector.simulated.listing import listings
from collector.store.port import StorageFault
from tests.support.fleet import DAY, LEASE_MS, LONG, fleet, watched
from tests.support.until import until
from tests.support.worker_rounds import check_left_alone

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.fleet import Fleet
    from tests.support.processes import Process

KILLS = 50 if LONG else 10


async def test_ten_kills_during_a_backfill(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    rng = random.Random(4)
    async with fleet(database, mongo_uri, tmp_path, limits=Limits(20, 1_000)) as f:
        job = await f.backfill(days=38)
        async with watched(f, job) as cursor, AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(f.worker()) for _ in range(2)]
            for page in range(1, KILLS + 1):
                await f.reaches(job, page)
                victim = rng.randrange(2)
                workers[victim].signal(signal.SIGKILL)
                await workers[victim].ended()
                workers[victim] = await stack.enter_async_context(f.worker())
            done = await f.finished(job)
            cursor.check()
        f.check_equal_to_the_truth(done)
        f.check_no_window_was_exceeded()
        f.check_no_half_written_file_is_visible()


POINTS = [fault.value for fault in StorageFault if "delete" not in fault] + [
    "before_cursor",
    "after_cursor",
]


async def test_a_kill_at_every_point_between_page_and_cursor(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    """Each worker has a job of its own to write for: what is stored is not written again."""
    limits = Limits(10_000, 1_000)
    symbols = [market.symbol for market in listings(len(POINTS))]
    async with fleet(database, mongo_uri, tmp_path, limits=limits, markets=len(symbols)) as f:
        async with AsyncExitStack() as stack:
            jobs, cursors = [], []
            for symbol, point in zip(symbols, POINTS, strict=True):
                jobs.append(await f.backfill(symbol, days=10))
                cursors.append(await stack.enter_async_context(watched(f, jobs[-1])))
                arguments = ("--point", point, "--count", "1")
                async with f.worker("tests.acceptance.dying_worker", *arguments) as dying:
                    code = await dying.ended()
                    assert code == -signal.SIGKILL, f"{point}: {dying.said}"
                # A death is not the job's fault here: let nobody set it aside.
                await database.jobs.update_many({}, {"$set": {"kills": 0}})
            async with f.worker():
                done = [await f.finished(job) for job in jobs]
            for cursor in cursors:
                cursor.check()
        for job in done:
            f.check_equal_to_the_truth(job)
            assert job.cursor.last_ts == f.first_ms + 10 * DAY - MINUTE_MS
        f.check_no_half_written_file_is_visible()


@pytest.mark.parametrize("what", ["job", "connector"])
async def test_after_a_pause_nothing_is_sent_but_the_pages_in_flight(
    database: Database, mongo_uri: str, tmp_path: Path, what: str
) -> None:
    async with fleet(database, mongo_uri, tmp_path, limits=Limits(15, 1_000)) as f:
        job = await f.backfill(days=38)
        async with f.worker() as process:
            await f.reaches(job, 5)
            if what == "job":
                await f.queue.pause(job.id)
            else:
                await f.registry.pause("simulated")

            async def put_down() -> bool:
                return (await f.queue.get(job.id)).state is not State.RUNNING

            await until(put_down, "the job is put down")
            sent, cursor = len(f.klines()), (await f.queue.get(job.id)).cursor
            await check_left_alone(database, {"_id": job.id})
            assert len(f.klines()) == sent
            assert (await f.queue.get(job.id)).cursor == cursor
            if what == "job":
                await f.queue.resume(job.id)
            else:
                await f.registry.resume("simulated")
            await f.reaches(job, cursor.page + 5)
            process.signal(signal.SIGTERM)
            assert await process.ended() == 0


BAN_SECONDS = 8
IN_FLIGHT_MS = 2_000
"""On a busy machine a request that has its token may leave late."""


async def test_nobody_asks_during_a_ban_not_even_after_a_restart(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with fleet(database, mongo_uri, tmp_path, limits=Limits(40, 1_000)) as f:
        symbols = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT")
        jobs = [await f.backfill(symbol, days=38) for symbol in symbols]
        async with AsyncExitStack() as stack:
            workers: list[Process] = [await stack.enter_async_context(f.worker()) for _ in range(4)]
            await f.reaches(jobs[0], 3)
            f.exchange.faults.add(Ban(retry_after_s=BAN_SECONDS, count=1))
            await until(lambda: blocked(f), "the ban is on the connector")
            banned_at = f.exchange.now_ms()
            workers[0].signal(signal.SIGKILL)
            await workers[0].ended()
            await stack.enter_async_context(f.worker())
            for job in jobs:
                await f.finished(job, 120)
        entries = f.exchange.journal.since()
        refused = [entry for entry in entries if entry.status == 418]
        first = min(entry.at_ms for entry in refused)
        # Those already in flight when the ban fell may have met it; nobody after that.
        late = [
            e for e in entries if banned_at + IN_FLIGHT_MS < e.at_ms < first + BAN_SECONDS * 1000
        ]
        assert late == []
        for job in jobs:
            f.check_equal_to_the_truth(await f.queue.get(job.id))


async def blocked(f: Fleet) -> bool:
    connector = await f.registry.get("simulated")
    return bool(connector.document["blocked_until"])


async def stop_while_it_holds(f: Fleet, sleeper: Process, job: Job) -> None:
    """SIGSTOP in the middle of a run: between runs it would have nothing to lose."""

    async def caught() -> bool:
        sleeper.signal(signal.SIGSTOP)
        if (await f.queue.get(job.id)).state is State.RUNNING:
            return True
        sleeper.signal(signal.SIGCONT)
        return False

    await until(caught, "the worker is stopped while it holds the job")


async def test_a_late_page_of_a_worker_that_slept_changes_nothing(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with fleet(database, mongo_uri, tmp_path, limits=Limits(15, 1_000)) as f:
        job = await f.backfill(days=38)
        async with watched(f, job) as cursor, AsyncExitStack() as stack:
            sleeper = await stack.enter_async_context(f.worker())
            await f.reaches(job, 4)
            await stop_while_it_holds(f, sleeper, job)
            for _ in range(2):
                await stack.enter_async_context(f.worker())
            slept_at = time.monotonic()
            page = (await f.queue.get(job.id)).cursor.page
            await f.reaches(job, page + 4)
            assert time.monotonic() - slept_at > LEASE_MS / 2000
            sleeper.signal(signal.SIGCONT)

            async def noticed() -> bool:
                return bool(sleeper.lines("lease_lost"))

            await until(noticed, "the sleeper notices")
            done = await f.finished(job)
            cursor.check()
            line, *_ = sleeper.lines("lease_lost")
            assert line.keys() >= {"job", "exchange", "symbol", "fence"}, "whose line is it?"
        f.check_equal_to_the_truth(done)
        f.check_no_window_was_exceeded()
