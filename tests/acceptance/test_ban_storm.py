"""A storm of 429, then a 418 that outlives every process: all wait as told, and lose nothing."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.simulated.faults.answers import Ban, TooManyRequests
from tests.support.fleet import fleet
from tests.support.until import until
from workers.handlers.fill import MOST

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from collector.simulated.journal import JournalEntry
    from tests.support.fleet import Fleet
    from tests.support.processes import Process

SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT")
WORKERS = 4
STORM, STORM_SECONDS = 24, 4
BAN_SECONDS = 8


async def test_a_storm_and_a_ban_are_waited_out_whoever_lives(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with fleet(database, mongo_uri, tmp_path, limits=Limits(60, 1_000)) as f:
        jobs = [await f.backfill(symbol, days=38) for symbol in SYMBOLS]
        async with AsyncExitStack() as stack:
            workers = await started(f, stack)
            await f.reaches(jobs[0], 3)
            f.exchange.faults.add(TooManyRequests(retry_after_s=STORM_SECONDS, count=STORM))
            await until(lambda: refused_with(f, 429, STORM), "the storm has struck")
            f.exchange.faults.add(Ban(retry_after_s=BAN_SECONDS, count=1))
            await until(lambda: refused_with(f, 418, 1), "the ban has struck")
            await until(lambda: blocked_by_the_ban(f), "the ban is on the connector")
            for worker in workers:
                worker.signal(signal.SIGKILL)
            for worker in workers:
                await worker.ended()
            await started(f, stack)
            assert await blocked_by_the_ban(f), "the ban was over before anybody came back"
            done = [await f.finished(job) for job in jobs]
        entries = f.exchange.journal.since()
        waits = {429: STORM_SECONDS * 1000, 418: BAN_SECONDS * 1000}
        for entry in entries:
            if entry.status in waits:
                check_everybody_waited(entries, entry, waits[entry.status])
        banned_ms = next(entry.at_ms for entry in entries if entry.status == 418)
        after = [entry for entry in entries if entry.at_ms > banned_ms + waits[418]]
        assert after, "nobody came back"
        assert {entry.status for entry in after} == {200}
        for job in done:
            f.check_equal_to_the_truth(job)
        f.check_no_window_was_exceeded()
        f.check_no_half_written_file_is_visible()


async def started(f: Fleet, stack: AsyncExitStack) -> list[Process]:
    return [await stack.enter_async_context(f.worker()) for _ in range(WORKERS)]


async def refused_with(f: Fleet, status: int, count: int) -> bool:
    return sum(entry.status == status for entry in f.exchange.journal.since()) >= count


async def blocked_by_the_ban(f: Fleet) -> bool:
    connector = await f.registry.get("simulated")
    await f.database.read_server_clock()
    stopped = connector.stopped(f.database.server_clock.now_ms())
    return stopped is not None and "418" in connector.document["blocked_reason"]


def check_everybody_waited(
    entries: list[JournalEntry], refused: JournalEntry, wait_ms: int
) -> None:
    """Only what was in flight may still arrive, and that long before the wait is half over."""
    until_ms = refused.at_ms + wait_ms
    meanwhile = [entry for entry in entries if refused.at_ms < entry.at_ms < until_ms]
    late = [entry for entry in meanwhile if entry.at_ms > until_ms - wait_ms / 2]
    assert late == []
    assert len(meanwhile) < MOST * len(SYMBOLS)
