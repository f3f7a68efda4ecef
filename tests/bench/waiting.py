"""Whether a job without a token should sleep where it is or go back to the queue.

Sleeping keeps one of the worker's places busy for the whole wait. Going back costs two writes and
comes back late. The wait at which both cost the same is measured here; it is the reason for
`token_patience_seconds`. Then both run for real against exchanges with short and long periods.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import RateLimited
from collector.jobs import settlement
from collector.jobs.job import JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.settings_sections import WorkerSettings
from tests.bench.harness import Bench, Figure, in_turn, percentile
from tests.bench.working import working
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from typing import Never

    from collector.mongo.client import Database
    from workers.job_run import JobRun

EXCHANGE = "bench"
TOGETHER = 32
JOBS = 8
TOKENS_A_PERIOD = 20
FOREVER = 3_600.0


async def run(bench: Bench) -> list[Figure]:
    return [*await _cost(bench), *await _for_real(bench)]


# -- what a release costs -----------------------------------------------------------------------


async def _cost(bench: Bench) -> list[Figure]:
    async with bench.database() as database:
        queue = JobQueue(database)
        for number in range(2 * TOGETHER):
            await queue.add(JobSpec(EXCHANGE, "count", symbol=f"{number}"))
        cycles = bench.pick(20, 10)
        samples = await in_turn(
            {
                "one job": partial(_release_ms, database, 1, cycles),
                f"{TOGETHER} at once": partial(_release_ms, database, TOGETHER, cycles // 4),
                "sleeping, too late by": partial(_oversleep_ms, cycles),
            },
            rounds=bench.pick(9, 3),
        )
    alone, crowd = median(samples["one job"]), median(samples[f"{TOGETHER} at once"])
    # Those who wait for a window come back spread over some milliseconds; half of it on average.
    spread_ms = settlement.WAIT_SPREAD_MS / 2
    patience_ms = WorkerSettings().token_patience_seconds * 1000
    bench.show(
        "settle(wait) and claim again, ms a job",
        ["", "ms"],
        [
            *([name, median(values)] for name, values in samples.items()),
            ["spread on coming back, mean", spread_ms],
            [f"break-even: {TOGETHER} at once, with spread", crowd + spread_ms],
            ["token_patience_seconds", patience_ms],
        ],
    )
    return [
        Figure("waiting.release and lease, one job", alone, " ms"),
        Figure(f"waiting.break-even, {TOGETHER} at once", crowd + spread_ms, " ms"),
        Figure("waiting.patience / break-even", patience_ms / (crowd + spread_ms)),
    ]


async def _release_ms(database: Database, jobs: int, cycles: int) -> float:
    """Milliseconds from a denial until the job is in hand again, when nothing has to be awaited."""
    leasing = Leasing(database, "bench")
    denied = settlement.wait_for_token(RateLimited(EXCHANGE, 0, "window"), 0.0)
    costs = []

    async def hold_one() -> None:
        (lease,) = await leasing.claim(EXCHANGE)
        for _ in range(cycles):
            started = time.monotonic()
            await leasing.settle(lease, denied)
            (lease,) = await leasing.claim(EXCHANGE)
            costs.append((time.monotonic() - started) * 1000)
        await leasing.settle(lease, settlement.give_back())

    await asyncio.gather(*(hold_one() for _ in range(jobs)))
    return median(costs)


async def _oversleep_ms(cycles: int) -> float:
    """How much later than asked for a sleep in place ends."""
    wait, late = 0.02, []
    for _ in range(cycles):
        started = time.monotonic()
        await asyncio.sleep(wait)
        late.append((time.monotonic() - started - wait) * 1000)
    return percentile(late, 0.95)


# -- both for real ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker made of an exchange's budget."""

    share: float
    """The time the budget would have allowed, as a share of the time it took."""
    leases_a_token: float


async def _for_real(bench: Bench) -> list[Figure]:
    ours = WorkerSettings().token_patience_seconds
    ways = {"always release": 0.0, f"patience {ours:g} s": ours, "always sleep": FOREVER}
    rows, figures = [], []
    for period_ms, periods in bench.pick({250: 24, 1_000: 8, 4_000: 3}, {250: 8, 1_000: 3}).items():
        # At the same time: a few requests a second each, on databases of their own.
        outcomes = await asyncio.gather(
            *(_spend(bench, period_ms, periods, patience) for patience in ways.values())
        )
        for way, outcome in zip(ways, outcomes, strict=True):
            rows.append([f"{period_ms} ms", way, outcome.share, outcome.leases_a_token])
        figures.append(
            Figure(
                f"waiting.sleep / release, speed at {period_ms} ms",
                outcomes[-1].share / outcomes[0].share,
            )
        )
    bench.show(
        f"{JOBS} jobs on {TOKENS_A_PERIOD} tokens a period",
        ["period", "way", "share of the budget", "leases a token"],
        rows,
    )
    return figures


async def _spend(bench: Bench, period_ms: int, periods: int, patience: float) -> Outcome:
    spent: list[float] = []
    first, last = TOKENS_A_PERIOD, TOKENS_A_PERIOD * (1 + periods)
    enough = asyncio.Event()

    async def handle(run: JobRun) -> Never:
        while True:
            await run.token()
            spent.append(time.monotonic())
            if len(spent) > last:
                enough.set()
            await run.commit(replace(run.cursor, page=run.cursor.page + 1), pages=1)

    async with bench.database() as database:
        await ConnectorRegistry(database).ensure(EXCHANGE, Limits(TOKENS_A_PERIOD, period_ms))
        queue = JobQueue(database)
        for number in range(JOBS):
            await queue.add(JobSpec(EXCHANGE, "bench", symbol=f"{number}"))
        config = WorkerConfig("bench", patience=patience)
        async with working(database, {"bench": handle}, config):
            await enough.wait()
            leases = sum(job.fence for job in await queue.find())
    # From the first token of one burst to the first of another.
    elapsed_ms = (spent[last] - spent[first]) * 1000
    return Outcome(periods * period_ms / elapsed_ms, (leases - JOBS) / last)
