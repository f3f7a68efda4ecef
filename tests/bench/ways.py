"""How much of a rate limit is used over a quiet way, a far one, and ways that are never the same.

Real workers, a real mongod and the simulated exchange, each a process of its own. The exchange
counts by itself and answers 429 when a request is one too many, so that a limit that is broken
costs time here as it does in life. Its journal tells when each request arrived.

Every figure is of the stretch after all workers are up, the first 60 answers are in and the first
periods are over, three of them or fifteen seconds: a limiter that learns how late requests arrive
needs some to learn from, and what it learns takes effect a period later. Violations are counted
from the very first request on, in every sliding window, with no tolerance.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.simulated.faults.answers import Latency
from collector.simulated.faults.arrival import LateArrival
from collector.simulated.faults.catalogue import fault_json
from collector.simulated.windows import max_in_window, sliding_violations
from tests.bench.backfill import DAY_MS, SYMBOLS, add_backfills, still_busy, until_sent
from tests.bench.harness import Figure
from tests.bench.stage import stage
from tests.support.fleet import PAGES_OF_100
from workers.handlers.fill import MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.simulated.faults.record import Fault
    from tests.bench.harness import Bench

LEARNT_AFTER = 60
"""Answers before the figures begin."""
LEARNT_PERIODS, LEARNT_MS = 3, 15_000
"""And periods, or milliseconds where periods are long."""
_SPREAD = LateArrival(ms=40, jitter_ms=60)
WAYS: dict[str, tuple[Fault, ...]] = {
    "quiet": (Latency(ms=20),),
    "far": (Latency(ms=300),),
    "jitter": (_SPREAD,),
    "tail": (_SPREAD, LateArrival(ms=250, probability=0.01)),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A budget, the way to the exchange, and so many workers that share the budget."""

    way: str
    limit: int
    period_ms: int
    periods: int
    at_least: float
    workers: int = 1

    @property
    def name(self) -> str:
        crowd = "" if self.workers == 1 else f", {self.workers} workers"
        return f"{self.limit} / {self.period_ms // 1000} s, {self.way}{crowd}"


def second(way: str, at_least: float, periods: int = 20) -> Setting:
    return Setting(way, 20, 1_000, periods, at_least)


def five_seconds(way: str, at_least: float, workers: int = 1) -> Setting:
    return Setting(way, 100, 5_000, 6, at_least, workers)


def minute(way: str) -> Setting:
    return Setting(way, 1_200, 60_000, 1, 0.95)  # four of them share two cores


SECOND = [
    second("quiet", 0.95),
    second("far", 0.95),
    second("jitter", 0.9),
    second("tail", 0.9, periods=40),  # one request in a hundred is what it is about
]
FIVE = [
    *(five_seconds("quiet", 0.97, workers) for workers in (1, 2, 4, 8)),
    five_seconds("far", 0.97),
    five_seconds("jitter", 0.95),
    five_seconds("tail", 0.93),
]
MINUTE = [minute(way) for way in WAYS]
QUICK = [
    replace(SECOND[0], periods=10),
    replace(SECOND[3], periods=12),
    replace(FIVE[0], periods=2),
    replace(FIVE[6], periods=2),
]


@dataclass(frozen=True, slots=True)
class Use:
    """What the journal says about a budget."""

    share: float
    """The time the budget allows for the requests of the stretch, by the time they took."""
    refused: int
    """Answers of 429."""
    violations: int
    fullest: int
    """The most requests in any period."""


async def run(bench: Bench) -> list[Figure]:
    settings: Sequence[Setting] = bench.pick([*SECOND, *FIVE], QUICK)
    uses = [await _use(bench, setting) for setting in settings]
    if not bench.quick:
        # Twenty requests a second and a margin of most of a second: these may run side by side.
        uses += await asyncio.gather(*(_use(bench, setting) for setting in MINUTE))
        settings = [*settings, *MINUTE]
    rows = list(zip(settings, uses, strict=True))
    bench.show(
        "shares of a budget, by the exchange's journal",
        ["", "share", "429s", "violations", "fullest period", "allowed"],
        [
            [
                setting.name,
                f"{use.share:.3f}",
                str(use.refused),
                str(use.violations),
                str(use.fullest),
                str(setting.limit),
            ]
            for setting, use in rows
        ],
    )
    figures = []
    for setting, use in rows:
        figures.append(Figure(f"ways.{setting.name}", use.share, at_least=setting.at_least))
        figures.append(Figure(f"ways.{setting.name}: violations", use.violations, "", at_most=0))
    return figures


async def _use(bench: Bench, setting: Setting) -> Use:
    stretch = setting.limit * setting.periods
    # When the first answers are in, at most so many others are under way.
    learning_ms = min(LEARNT_PERIODS * setting.period_ms, LEARNT_MS)
    learning = setting.limit * -(-learning_ms // setting.period_ms)
    wanted = LEARNT_AFTER + learning + MOST * len(SYMBOLS) + stretch
    async with stage(bench, Limits(setting.limit, setting.period_ms), *_options(setting)) as on:
        for _ in range(setting.workers):
            # What is measured is when requests arrive, not how fast bars are written.
            await on.start_worker(**PAGES_OF_100)
        await on.workers_are_up()
        await add_backfills(on, SYMBOLS, SystemClock().wall_ms() // DAY_MS * DAY_MS)
        entries = await until_sent(
            on, wanted, 2 * wanted / setting.limit * setting.period_ms / 1000
        )
        await still_busy(on)
    times = [entry["at_ms"] for entry in entries]
    begin = _first_after_learning(entries, times[0] + learning_ms)
    return Use(
        share=setting.periods * setting.period_ms / (times[begin + stretch] - times[begin]),
        refused=sum(entry["status"] == 429 for entry in entries),
        violations=sliding_violations(times, setting.limit, setting.period_ms),
        fullest=max_in_window(times, setting.period_ms),
    )


def _options(setting: Setting) -> list[str]:
    faults = json.dumps([fault_json(fault) for fault in WAYS[setting.way]])
    limit = ["--limit", str(setting.limit), "--period-ms", str(setting.period_ms), "--enforce"]
    return [*limit, "--faults", faults]


def _first_after_learning(entries: list[dict[str, Any]], not_before_ms: float) -> int:
    """The first request that arrived after the answers to learn from had left."""
    answered = sorted(
        entry["at_ms"] + entry["took_ms"] for entry in entries if entry["took_ms"] is not None
    )
    learnt_ms = answered[LEARNT_AFTER - 1]
    begins_ms = max(learnt_ms, not_before_ms)
    return next(at for at, entry in enumerate(entries) if entry["at_ms"] > begins_ms)
