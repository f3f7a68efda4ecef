"""FXCM with 20 instruments in two timeframes, two worker processes and a budget a tenth as long.

One works and one stands by: history within every window, priority series in each of them, a
heartbeat every second, one login.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from collector.exchanges.fxcm.limits import spacing
from collector.exchanges.fxcm.quota_settings import HistoryTarget
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.operations import connectors
from tests.support.fleet import LONG
from tests.support.fxcm.collecting import DAY, FIRST_MS, login_settings
from tests.support.fxcm.fxcorepy import truth
from tests.support.fxcm.living import gone
from tests.support.fxcm.short_budget import QUOTA, shortened
from tests.support.most_in_any import most_in_any
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.fxcm.server import FakeServer

SECONDS = 120 if LONG else 15
FRAMES = ("1m", "5m")


async def give_work(database: Database) -> None:
    """More history than the budget allows, and the stream whose heartbeat is watched."""
    queue = JobQueue(database)
    cursor = Cursor(since_ms=FIRST_MS, until_ms=FIRST_MS + 200 * DAY)
    for symbol in truth.INSTRUMENTS:
        for frame in FRAMES:
            await queue.add(JobSpec("fxcm", "ohlcv_backfill", symbol, frame, cursor=cursor))
    await queue.add(JobSpec("fxcm", "price_stream"))


async def beats_until(database: Database, ends: float) -> list[int]:
    """When each heartbeat was written, on the server's clock."""
    seen: list[int] = []

    async def is_over() -> bool:
        found = await database.raw["live"].find_one({"kind": "heartbeat"})
        if found is not None and found["seen_at"] not in seen[-1:]:
            seen.append(found["seen_at"])
        return time.monotonic() > ends

    await until(is_over, "the time is over", SECONDS + 60)
    return seen


async def beat(database: Database, seen: list[int]) -> None:
    """A heartbeat of a process that does nothing else, for comparison: the machine is busy."""
    while True:
        seen.append(await database.now_ms())
        await asyncio.sleep(1)


def longest(beats: list[int]) -> int:
    return max(after - before for before, after in pairwise(beats))


async def test_twenty_instruments_share_one_budget_and_one_session(
    database: Database, mongo_uri: str, fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(now_ms=None, first_ms=FIRST_MS)
    limits = shortened()
    given = {each.name: getattr(limits, each.name) for each in fields(limits)}
    await connectors.ensure(database, "fxcm", given)
    await give_work(database)
    environment: dict[str, Any] = {
        **login_settings(fxcm_python),
        "COLLECTOR_HOME": str(tmp_path / "home"),
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_DATA": str(tmp_path / "lake"),
        "COLLECTOR_EXCHANGE_URLS": json.dumps({"fxcm": fxcm_server.url}),
        # Small pages: what is measured is when calls arrive, not how fast the stand-in makes bars.
        "COLLECTOR_API__ADAPTER": "fxcm",
        "COLLECTOR_API__PAGE_SIZE": "20",
    }
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(program("workers", **environment))
        await fxcm_server.seen("history", 40)
        idle: list[int] = []
        beating = asyncio.create_task(beat(database, idle))
        beats = await beats_until(database, time.monotonic() + SECONDS)
        beating.cancel()
    calls = [entry for entry in fxcm_server.journal if entry.what == "history"]
    times = [entry.at for entry in calls]
    period = limits.rate_limit_period_ms / 1000
    for window in limits.all_windows:
        assert most_in_any(window.period_ms / 1000, times) <= window.limit
    keys = [str(HistoryTarget.of(e.fields["instrument"], e.fields["timeframe"])) for e in calls]
    first = [at for at, key in zip(times, keys, strict=True) if key in spacing(QUOTA).first]
    ends = [times[0], *first, times[-1]]
    assert max(after - before for before, after in pairwise(ends)) < period
    assert len(set(keys)) == len(truth.INSTRUMENTS) * len(FRAMES), "all of them are served"
    assert (fxcm_server.count("login"), fxcm_server.second_logins) == (1, 0)
    assert longest(beats) < longest(idle) + 3_000, "a heartbeat was late"
    for entry in fxcm_server.journal:
        await gone(entry.pid)
    print(
        f"fxcm: {len(calls)} calls, {len(first)} of series that go first, {len(set(keys))} series,"
        f" {most_in_any(period, times)} in any {period:g} s; {len(beats)} heartbeats, at most"
        f" {longest(beats)} ms apart (idle: {longest(idle)}); {fxcm_server.count('login')} login"
    )
