"""Tokens a second: two attempts on the client's clock, our statement, our limiter, the `limits`
library.

Budgets are so large that every token is granted; what a denial costs is measured apart, on a budget
that is spent.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from collector.connectors.window import COARSE_BINS
from tests.bench.harness import Bench, Figure, Samples, in_turn, ratio
from tests.bench.tokens_limits import LIMITS
from tests.bench.tokens_ours import COALESCED, ONE, OURS, PLENTY, SEED, make_connectors, spend
from tests.bench.tokens_process import WAITERS, open_spenders

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database

PROCESSES = 4
PROCESS_SECONDS = 0.6
QUICK_LIMITS = ("limits fixed, asyncio", "limits fixed, threads")
DENIED_WAITERS = 32


async def run(bench: Bench) -> list[Figure]:
    async with bench.database() as database:
        await make_connectors(database, PLENTY)
        by_crowd = await _in_this_process(bench, database)
        if not bench.quick:
            by_crowd[f"{PROCESSES}x{WAITERS}"] = await _in_processes(bench, database)
    _show_rates(bench, "tokens/s by waiters", by_crowd)
    denials = await _denials(bench)
    _show_rates(bench, "denials/s", {f"{DENIED_WAITERS}": denials})
    return [*_grant_figures(by_crowd), *_denial_figures(denials)]


async def _in_this_process(bench: Bench, database: Database) -> dict[str, Samples]:
    seconds, rounds = bench.pick(0.3, 0.1), bench.pick(5, 3)
    async with AsyncExitStack() as stack:
        spenders = await open_spenders(database, bench.uri, stack)
        if bench.quick:
            spenders = {way: s for way, s in spenders.items() if way in {*OURS, *QUICK_LIMITS}}
        return {
            f"{waiters}": await in_turn(
                {way: partial(spender, waiters, seconds) for way, spender in spenders.items()},
                rounds,
            )
            for waiters in bench.pick((1, 32, 128), (32, 128))
        }


async def _in_processes(bench: Bench, database: Database) -> Samples:
    async with AsyncExitStack() as stack:
        crowd = [
            await stack.enter_async_context(_process(bench.uri, database.raw.name))
            for _ in range(PROCESSES)
        ]
        for process in crowd:
            await _line(process)

        async def spend_together(way: str) -> float:
            for process in crowd:
                assert process.stdin is not None
                process.stdin.write(f"{way} {PROCESS_SECONDS}\n".encode())
            return sum([float(await _line(process)) for process in crowd])

        ways = (*OURS, *QUICK_LIMITS)
        return await in_turn({way: partial(spend_together, way) for way in ways}, rounds=5)


@asynccontextmanager
async def _process(uri: str, name: str) -> AsyncIterator[Process]:
    command = (sys.executable, "-m", "tests.bench.tokens_process", uri, name)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    yield process
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


async def _line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def _denials(bench: Bench) -> Samples:
    """Answers a second when there is nothing to grant."""
    seconds, rounds = bench.pick(0.3, 0.1), bench.pick(5, 3)
    async with bench.database() as database, AsyncExitStack() as stack:
        await make_connectors(database, limit=COARSE_BINS // 2)
        denied = {
            way: partial(
                spend,
                await stack.enter_async_context(opener(database, way)),
                DENIED_WAITERS,
                seconds,
                expected=False,
            )
            for way, opener in OURS.items()
        }
        return await in_turn(denied, rounds)


def _show_rates(bench: Bench, title: str, by_crowd: dict[str, Samples]) -> None:
    ways = next(iter(by_crowd.values()))
    rows = [
        [way, *(median(samples[way]) if way in samples else "" for samples in by_crowd.values())]
        for way in ways
    ]
    bench.show(title, ["way", *by_crowd], rows)


def _grant_figures(by_crowd: dict[str, Samples]) -> list[Figure]:
    figures = []
    for crowd, samples in by_crowd.items():
        strongest = max((way for way in LIMITS if way in samples), key=lambda w: median(samples[w]))
        figures += [
            Figure(
                f"tokens.coalesced / seed @{crowd}",
                ratio(samples, COALESCED, SEED),
                at_least=10 if crowd == "128" else None,
            ),
            Figure(f"tokens.one command / seed @{crowd}", ratio(samples, ONE, SEED)),
            Figure(
                f"tokens.coalesced / best of limits @{crowd}",
                ratio(samples, COALESCED, strongest),
                at_least=None if crowd == "1" else 2,
            ),
            Figure(f"tokens.one command / best of limits @{crowd}", ratio(samples, ONE, strongest)),
        ]
    return figures


def _denial_figures(samples: Samples) -> list[Figure]:
    return [
        Figure("denials.coalesced / seed @32", ratio(samples, COALESCED, SEED)),
        Figure("denials.one command / seed @32", ratio(samples, ONE, SEED)),
    ]
