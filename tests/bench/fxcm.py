"""FXCM's ticks from the SDK's callback to a reader in the parent, with and without history.

The SDK's native part is the stand-in, which gives prices as fast as they are taken, and makes the
bars of a history in the same process: both cost more than they do with the real one. The sidecar
runs on Python 3.7 where there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from collector.exchanges.fxcm.client import FxcmClient, FxcmLogin
from collector.exchanges.fxcm.interpreter import Interpreter, find_interpreter
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.support.fxcm.sdk import fake_python, real_python
from tests.support.fxcm.server import NOON_MS, FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.exchanges.fxcm.tick_queue import TickCounts

# A busy minute of all of FXCM's instruments is a few thousand ticks.
AT_LEAST = 10_000
INSTRUMENTS = ("EUR/USD", "USD/JPY", "XAU/USD")
BARS = 300
ALONE, WITH_HISTORY = "ticks alone", "history running"


async def run(bench: Bench) -> list[Figure]:
    count = bench.pick(200_000, 40_000)
    runs: dict[str, list[TickCounts]] = {ALONE: [], WITH_HISTORY: []}
    with tempfile.TemporaryDirectory(prefix="collector-fxcm-") as root:
        interpreter = await _interpreter(Path(root))
        samples = await in_turn(
            {
                ALONE: partial(_ticks_a_second, interpreter, count, False, runs[ALONE]),
                WITH_HISTORY: partial(
                    _ticks_a_second, interpreter, count, True, runs[WITH_HISTORY]
                ),
            },
            rounds=bench.pick(5, 2),
            settled=lambda samples: median(samples[WITH_HISTORY]) >= AT_LEAST,
        )
    bench.show(
        f"{count:,} ticks, Python {interpreter.python}: read by the parent a second",
        ["", "median", "least", "dropped, of all"],
        [
            [
                name,
                median(values),
                min(values),
                f"{sum(map(_dropped, runs[name])) / count / len(runs[name]):.1%}",
            ]
            for name, values in samples.items()
        ],
    )
    unaccounted = sum(
        abs(count - counts.delivered - _dropped(counts))
        for each in runs.values()
        for counts in each
    )
    return [
        Figure(f"fxcm.{WITH_HISTORY}", median(samples[WITH_HISTORY]), "/s", at_least=AT_LEAST),
        Figure(f"fxcm.{WITH_HISTORY} / {ALONE}", ratio(samples, WITH_HISTORY, ALONE)),
        Figure("fxcm.ticks neither read nor counted as dropped", unaccounted, "", at_most=0),
    ]


async def _interpreter(root: Path) -> Interpreter:
    python = None
    with contextlib.suppress(pytest.skip.Exception):
        python = await asyncio.to_thread(real_python)
    fake = await asyncio.to_thread(fake_python, root, python)
    return await find_interpreter({**os.environ, "COLLECTOR_FXCM_PYTHON": str(fake)})


async def _ticks_a_second(
    interpreter: Interpreter, count: int, history: bool, runs: list[TickCounts]
) -> float:
    home = interpreter.path.with_name("sdk")
    async with (
        FakeServer() as server,
        FxcmClient(interpreter, home, os.environ, lambda: 60.0) as client,
    ):
        await client.login(FxcmLogin("trader", "secret", server.url))
        await client.subscribe()
        async with _asking(client, history):
            started = time.monotonic()
            server.burst(count, *INSTRUMENTS)
            async for tick in client.ticks:
                if tick.number == count:
                    break
            seconds = time.monotonic() - started
        runs.append(client.ticks.counts)
    return client.ticks.counts.delivered / seconds


def _dropped(counts: TickCounts) -> int:
    return counts.dropped_here + counts.dropped_in_sidecar


@contextlib.asynccontextmanager
async def _asking(client: FxcmClient, history: bool) -> AsyncIterator[None]:
    """One history after the other while the ticks come."""

    async def ask() -> None:
        while True:
            await client.history("EUR/USD", "m1", NOON_MS - BARS * 60_000, NOON_MS)

    task = asyncio.create_task(ask()) if history else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
