"""How much of a rate limit a backfill uses, and what a year costs without one (`year.py`).

Real workers, a real mongod and the simulated exchange, each a process of its own. The exchange's
journal tells what was sent, whatever the workers believe.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.simulated.listing import WELL_KNOWN
from collector.simulated.windows import sliding_violations
from tests.bench import year
from tests.bench.harness import Bench, Figure
from tests.bench.stage import EXCHANGE, Stage, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

SYMBOLS = [listing.symbol for listing in WELL_KNOWN[:4]]
DAY_MS = 86_400_000
ASKED = ("path", "symbol", "interval", "start_ms", "limit")
"""What makes a request the same as an earlier one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A budget, an exchange so far away, and so many workers that share the budget."""

    limit: int
    period_ms: int
    latency_ms: int
    workers: int
    periods: int
    at_least: float

    @property
    def name(self) -> str:
        budget = f"{self.limit} / {self.period_ms // 1000} s"
        crowd = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"{budget}, {self.latency_ms} ms, {crowd}"


def five_seconds(latency_ms: int, workers: int, periods: int = 10) -> Setting:
    return Setting(100, 5_000, latency_ms, workers, periods, at_least=0.95)


def one_second(workers: int, periods: int = 30) -> Setting:
    return Setting(20, 1_000, 20, workers, periods, at_least=0.85)


FULL = (*(five_seconds(ms, n) for ms in (20, 300) for n in (1, 2, 4, 8)), one_second(1))
QUICK = (five_seconds(300, 4, periods=4), one_second(1, periods=15))


@dataclass(frozen=True, slots=True)
class Use:
    """What the journal says about a budget."""

    sent: float
    """The time the budget allows for these requests, as a share of the time they took."""
    useful: float
    """The same for those alone that asked for something new: a page asked twice is one page."""
    counted: float
    """Requests in so many whole periods, as a share of those allowed: no finer than a burst."""
    unanswered: int
    """Requests given up by the worker, and those still under way at the end."""
    violations: int
    cpu_s_1000: float
    """Of all workers, for a thousand requests."""


async def run(bench: Bench) -> list[Figure]:
    settings: Sequence[Setting] = bench.pick(FULL, QUICK)
    uses = [await _use(bench, setting) for setting in settings]
    bench.show(
        "backfills under a budget: what the exchange's journal says",
        ["", "useful", "sent", "by count", "unanswered", "violations", "CPU s / 1000"],
        [
            [
                setting.name,
                *(f"{share:.3f}" for share in (use.useful, use.sent, use.counted)),
                str(use.unanswered),
                str(use.violations),
                use.cpu_s_1000,
            ]
            for setting, use in zip(settings, uses, strict=True)
        ],
    )
    figures = []
    for setting, use in zip(settings, uses, strict=True):
        name = f"backfill.{setting.name}"
        figures.append(Figure(f"{name}: useful", use.useful, at_least=setting.at_least))
        figures.append(Figure(f"{name}: violations", use.violations, "", at_most=0))
    return [*figures, *await year.run(bench)]


# -- under a budget -----------------------------------------------------------------------------


async def _use(bench: Bench, setting: Setting) -> Use:
    limits = Limits(setting.limit, setting.period_ms)
    wanted = setting.limit * setting.periods
    async with stage(bench, limits, "--latency-ms", str(setting.latency_ms)) as on:
        until = SystemClock().wall_ms() // DAY_MS * DAY_MS
        for _ in range(setting.workers):
            await on.start_worker()
        await on.workers_are_up()
        await add_backfills(on, SYMBOLS, until)
        entries = await until_sent(on, wanted, 2 * setting.periods * setting.period_ms / 1000)
        cpu_s = on.costs()["workers"].cpu_s
        await still_busy(on)
    times = [entry["at_ms"] for entry in entries]
    bound_ms = setting.periods * setting.period_ms
    sent = bound_ms / (times[wanted] - times[0])
    asked = {tuple(entry[name] for name in ASKED) for entry in entries}
    return Use(
        sent=sent,
        useful=sent * len(asked) / len(entries),
        counted=sum(moment < times[0] + bound_ms for moment in times) / wanted,
        unanswered=sum(entry["status"] == 0 for entry in entries),
        violations=sliding_violations(times, setting.limit, setting.period_ms),
        cpu_s_1000=1000 * cpu_s / len(times),
    )


async def add_backfills(on: Stage, symbols: Sequence[str], until_ms: int) -> None:
    queue = JobQueue(on.database)
    for symbol in symbols:
        cursor = Cursor(until_ms=until_ms)
        await queue.add(JobSpec(EXCHANGE, "ohlcv_backfill", symbol, "1m", cursor=cursor))


async def until_sent(on: Stage, wanted: int, seconds: float) -> list[dict[str, Any]]:
    """The journal, once the whole budget of the stretch and one request more are there."""
    async with asyncio.timeout(seconds + 30):
        while (await on.told("summary"))["requests"] <= wanted:
            await asyncio.sleep(0.25)
    return await on.journal()


async def still_busy(on: Stage) -> None:
    """A backfill that ended or failed would have left its part of the budget unused."""
    for job in await JobQueue(on.database).find():
        if job.state in (State.SUCCESS, State.FAILED):
            raise RuntimeError(f"{job.symbol} is {job.state.value}: {job.document['stats']}")
