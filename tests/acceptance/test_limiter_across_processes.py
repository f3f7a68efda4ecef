"""One budget for many processes whose clocks are minutes apart."""

from __future__ import annotations

import asyncio
import json
import signal
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
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.mongo.client import Database

LIMIT, PERIOD_MS = 400, 5_000
SKEWS_MS = (-300_000, -1_000, 1_000, 300_000)


async def spend_in_four_processes(
    database: Database,
    mongo_uri: str,
    meanwhile: Callable[[], Awaitable[None]],
    **options: Any,
) -> list[float]:
    """The moments at which all of them together had tokens in hand, in order.

    They spend from when each has its first token until `meanwhile` is over.
    """
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
                    f"--out={file}",
                    *(f"--{name}={value}" for name, value in options.items()),
                )
            )
            for skew, file in zip(SKEWS_MS, files, strict=True)
        ]
        for spender in spenders:
            assert await spender.line() == "at work", spender.said
        await meanwhile()
        for spender in spenders:
            spender.signal(signal.SIGTERM)
        codes = await asyncio.gather(*(spender.ended() for spender in spenders))
        assert codes == [0, 0, 0, 0], [spender.said for spender in spenders]
        shares = [json.loads(file.read_text("utf-8")) for file in files]
    assert all(shares), "a process got nothing at all"
    return sorted(moment for share in shares for moment in share)


async def test_no_sliding_period_holds_more_than_the_limit(
    database: Database, mongo_uri: str
) -> None:
    await ConnectorRegistry(database).ensure("x", Limits(LIMIT, PERIOD_MS))
    times = await spend_in_four_processes(database, mongo_uri, lambda: asyncio.sleep(15))
    assert most_in_any(PERIOD_MS / 1000, times) <= LIMIT
    # From the first token on, three whole periods must have had their budget.
    spent = bisect_left(times, times[0] + 3 * PERIOD_MS / 1000)
    # A process that stalls for longer than a token lives throws away those it was just granted.
    granted_total = (await ConnectorRegistry(database).get("x")).document["granted_total"]
    aged = granted_total - len(times)
    print(f"sliding: {spent / (3 * LIMIT):.3f} of the budget, {most_in_any(5, times)} in any 5 s")
    # How much of it a quiet machine uses is for `python -m tests.bench tokens`.
    assert spent + aged >= 0.8 * 3 * LIMIT, f"{aged} tokens aged"


async def test_no_fixed_window_holds_more_than_the_limit(
    database: Database, mongo_uri: str
) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(LIMIT, PERIOD_MS, algorithm="fixed_window"))
    windows: dict[int, int] = {}

    async def watch() -> None:
        """The largest usage ever stored for each window, as any reader would see it."""
        async with await database.raw["connectors"].watch(full_document="updateLookup") as stream:
            while len(windows) < 3 or LIMIT not in windows.values():
                change = await stream.try_next()
                if change is None:
                    continue
                document = change["fullDocument"]
                start = document["rate_limit_window_start"]
                windows[start] = max(windows.get(start, 0), document["rate_limit_usage"])

    await spend_in_four_processes(database, mongo_uri, watch)
    assert max(windows.values()) == LIMIT
    starts = sorted(windows)
    assert all(b - a >= PERIOD_MS for a, b in pairwise(starts))


@pytest.mark.parametrize("stop", ["pause", "block"])
async def test_a_stop_acts_on_the_next_token_of_every_process_and_ends_by_itself(
    database: Database, mongo_uri: str, stop: str
) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", Limits(1_000_000, PERIOD_MS))

    async def granted() -> int:
        return int((await registry.get("x")).document["granted_total"])

    async def server_ms() -> float:
        return (await database.read_server_clock()).timestamp() * 1000

    async def act() -> None:
        async def at_full_speed() -> bool:
            return await granted() >= 1000

        await until(at_full_speed, "a thousand tokens are spent")
        until_ms = round(await server_ms()) + 3_000
        stop_now = (
            registry.pause("x", until_ms=until_ms)
            if stop == "pause"
            else registry.block("x", "418", until_ms=until_ms)
        )
        # The document as the stop left it: every later grant would be one too many.
        before = (await stop_now).document["granted_total"]
        while True:
            found = await granted()
            if await server_ms() >= until_ms:
                break
            assert found == before
            await asyncio.sleep(0.1)

        async def spent_again() -> bool:
            return await granted() > before + 100

        await until(spent_again, "tokens are spent again")

    await spend_in_four_processes(database, mongo_uri, act, acquirers=8)
