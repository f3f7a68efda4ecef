"""FXCM's budget for history with two processes that poll 20 instruments in two timeframes.

All times are a tenth of the real ones: windows of 6 and 360 seconds, polls every 0.3 seconds.
"""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

from collector.connectors.history_budget import history_budget
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.fxcm.limits import spacing
from tests.support.fleet import LONG
from tests.support.fxcm.short_budget import QUOTA, shortened
from tests.support.most_in_any import most_in_any
from tests.support.processes import program

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

PROCESSES = 2
SECONDS = 120 if LONG else 14
SYMBOLS = ("XAUUSD", "EURUSD", *(f"FX{number:02}" for number in range(18)))
KEYS = [f"{symbol}:{tf}" for symbol in SYMBOLS for tf in ("1m", "5m")]


async def calls_of_all(
    database: Database, mongo_uri: str, folder: Path
) -> list[list[tuple[float, str]]]:
    """What each process called, and when."""
    files = [folder / f"{number}.json" for number in range(PROCESSES)]
    async with AsyncExitStack() as stack:
        pollers = [
            await stack.enter_async_context(
                program(
                    "tests.acceptance.history_poller",
                    f"--uri={mongo_uri}",
                    f"--database={database.raw.name}",
                    f"--keys={','.join(KEYS)}",
                    "--every=0.3",
                    f"--out={file}",
                )
            )
            for file in files
        ]
        for poller in pollers:
            assert await poller.line() == "at work", poller.said
        await asyncio.sleep(SECONDS)
        for poller in pollers:
            poller.signal(signal.SIGTERM)
        codes = await asyncio.gather(*(poller.ended() for poller in pollers))
        assert codes == [0] * PROCESSES, [poller.said for poller in pollers]
    return [json.loads(file.read_text("utf-8")) for file in files]


async def test_two_processes_stay_within_one_budget_and_feed_what_goes_first(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    limits = shortened()
    registry = ConnectorRegistry(database)
    await registry.ensure("fxcm", limits)
    shares = await calls_of_all(database, mongo_uri, tmp_path)
    assert all(shares), "a process got nothing at all"
    calls = sorted((moment, key) for share in shares for moment, key in share)
    times = [moment for moment, _ in calls]
    for window in limits.all_windows:
        assert most_in_any(window.period_ms / 1000, times) <= window.limit
    first = [moment for moment, key in calls if key in spacing(QUOTA).first]
    period = limits.rate_limit_period_ms / 1000
    # In every window there was a call of a series that goes first.
    ends = [times[0], *first, times[-1]]
    assert max(after - before for before, after in pairwise(ends)) < period
    # The others are served as well, and what they did not get is on record.
    assert {key for _, key in calls} == set(KEYS)
    shown = history_budget(await registry.get("fxcm"), await database.now_ms())
    assert shown is not None
    assert shown["skipped_polls"]
    print(
        f"history budget: {len(calls)} calls, {len(first)} of series that go first,"
        f" {most_in_any(period, times)} in any {period:g} s; refused"
        f" {shown['skipped_polls'][0]['by_reason']}"
    )
