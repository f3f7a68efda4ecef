"""One budget for many processes whose clocks are minutes apart."""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_left
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from tests.support.most_in_any import most_in_any
from tests.support.processes import program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.mongo.client import Database

LIMIT, PERIOD_MS = 400, 5_000
SKEWS_MS = (-300_000, -1_000, 1_000, 300_000)
START_UP = 3.0


async def spend_in_four_processes(
    database: Database,
    mongo_uri: str,
    seconds: float,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
    **options: Any,
) -> list[float]:
    """The moments at which all of them together had tokens in hand, in order."""
    until = time.time() + START_UP + seconds
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        files = [folder / f"{number}.json" for number, _ in enumerate(SKEWS_MS)]
        spenders = [
            await stack.enter_async_context(
                program(
                    "tests.acceptance.token_spender",
                    f"--uri={mongo_uri}",
                    f"--database={database.raw.name}",
                    f"--skew-ms={skew}",
                    f"--until={until}",
                    f"--out={file}",
                    *(f"--{name}={value}" for name, value in options.items()),
                )
            )
            for skew, file in zip(SKEWS_MS, files, strict=True)
        ]
        if meanwhile is not None:
            await meanwhile()
        codes = await asyncio.gather(*(spender.ended(60) for spender in spenders))
        assert codes == [0, 0, 0, 0], [spender.said for spender in spenders]
        shares = [json.loads(file.read_text("utf-8")) for file in files]
    assert all(shares), "a process got nothing at all"
    return sorted(moment for share in shares for moment in share)


async def test_no_sliding_period_holds_more_than_the_limit(
    database: Database, mongo_uri: str
) -> None:
    await ConnectorRegistry(database).ensure("x", Limits(LIMIT, PERIOD_MS))
    times = await spend_in_four_processes(database, mongo_uri, seconds=16)
    assert most_in_any(PERIOD_MS / 1000, times) <= LIMIT
    # From the first token on, three whole periods must have had their budget.
    spent = bisect_left(times, times[0] + 3 * PERIOD_MS / 1000)
    # A process that stalls for longer than a token lives throws away those it was just granted.
    granted_total = (await ConnectorRegistry(database).get("x")).document["granted_total"]
    aged = granted_total - len(times)
    print(f"sliding: {spent / (3 * LIMIT):.3f} of the budget, {most_in_any(5, times)} in any 5 s")
    assert spent + aged >= 0.95 * 3 * LIMIT
    assert spent >= 0.85 * 3 * LIMIT, f"{aged} tokens aged"


async def test_no_fixed_window_holds_more_than_the_limit(
    database: Database, mongo_uri: str
) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(LIMIT, PERIOD_MS, algorithm="fixed_window"))
    windows: dict[int, int] = {}

    async def watch() -> None:
        """The largest usage ever stored for each window, as any reader would see it."""
        async with await database.raw["connectors"].watch(full_document="updateLookup") as stream:
            deadline = time.time() + START_UP + 11
            while time.time() < deadline:
                change = await stream.try_next()
                if change is None:
                    continue
                document = change["fullDocument"]
                start = document["rate_limit_window_start"]
                windows[start] = max(windows.get(start, 0), document["rate_limit_usage"])

    await spend_in_four_processes(database, mongo_uri, seconds=11, meanwhile=watch)
    assert len(windows) >= 2
    assert max(windows.values()) == LIMIT
    starts = sorted(windows)
    assert all(b - a >= PERIOD_MS for a, b in pairwise(starts))


@pytest.mark.parametrize("stop", ["pause", "block"])
async def test_a_stop_acts_on_the_next_token_of_every_process_and_ends_by_itself(
    database: Database, mongo_uri: str, stop: str
) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(1_000_000, PERIOD_MS))
    stopped_at = 0.0

    async def granted() -> int:
        return int((await registry.get("x")).document["granted_total"])

    async def act() -> None:
        nonlocal stopped_at
        while await granted() < 1000:
            await asyncio.sleep(0.02)
        await database.read_server_clock()
        until_ms = database.server_clock.now_ms() + 3_000
        stop_now = (
            registry.pause("x", until_ms=until_ms)
            if stop == "pause"
            else registry.block("x", "418", until_ms=until_ms)
        )
        # The document as the stop left it: every later grant would be one too many.
        before = (await stop_now).document["granted_total"]
        stopped_at = time.time()
        while time.time() < stopped_at + 2.5:
            assert await granted() == before
            await asyncio.sleep(0.1)

    times = await spend_in_four_processes(database, mongo_uri, 6, act, acquirers=8)
    assert times[-1] > stopped_at + 3
