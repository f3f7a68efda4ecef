"""What bad answers cost: a year of minutes under a limit while some of the answers are useless.

A struck answer is a gateway's 502, a reset connection or a web page, by the die. Real processes;
the exchange's journal tells what was asked, the history of runs what the job believes.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.series import Series
from collector.simulated.faults.answers import BadAnswer
from collector.simulated.faults.catalogue import fault_json
from collector.simulated.listing import listings
from collector.simulated.truth import Truth
from collector.simulated.windows import sliding_violations
from tests.bench.backfill import DAY_MS, SYMBOLS, add_backfills
from tests.bench.harness import Figure
from tests.bench.stage import EXCHANGE, Stage, stage
from tests.support.stored_series import check_stored

if TYPE_CHECKING:
    from tests.bench.harness import Bench

LIMITS = Limits(100, 5_000)
SEED = 7
AT_MOST = {0.0: None, 0.02: 1.15, 0.1: 1.5}
"""Shares of bad answers, and how many times as long each may take as without any."""
GIVES_UP_AFTER = 5
"""Times as long as without bad answers: worse than that is bad enough."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one backfill took."""

    wall_s: float
    complete: bool
    """Else it was given up, and its wall time is only a part."""
    runs: int
    recorded: int
    """Pages, by the history of runs."""
    pages: int
    """Different pages that the exchange was asked for."""
    asked: int
    """Requests for them."""
    bad: int
    refused: int
    violations: int


async def run(bench: Bench) -> list[Figure]:
    days = bench.pick(365, 120)
    costs: dict[float, Cost] = {}
    for share in AT_MOST:
        patience_s = GIVES_UP_AFTER * costs[0.0].wall_s if costs else 300
        costs[share] = await _cost(bench, days, share, patience_s)
    bench.show(
        f"{days} days of one series at 100 / 5 s, 20 ms away, 1 worker",
        ["bad answers", "wall s", "runs", "pages", "recorded", "asked", "bad", "429s"],
        [
            [f"{share:.0%}", f"{'' if cost.complete else '> '}{cost.wall_s:.1f}"]
            + [str(n) for n in (cost.runs, cost.pages, cost.recorded, cost.asked)]
            + [str(n) for n in (cost.bad, cost.refused)]
            for share, cost in costs.items()
        ],
    )
    figures = []
    for share, cost in costs.items():
        at = f"bad answers.{days} days, {share:.0%}"
        if share:
            ratio = cost.wall_s / costs[0.0].wall_s
            figures.append(Figure(f"{at}: wall / without", ratio, at_most=AT_MOST[share]))
        unrecorded = abs(cost.pages - cost.recorded)
        figures.append(Figure(f"{at}: pages not in the history", unrecorded, "", at_most=0))
        figures.append(Figure(f"{at}: violations", cost.violations, "", at_most=0))
    return figures


async def _cost(bench: Bench, days: int, share: float, patience_s: float) -> Cost:
    until = SystemClock().wall_ms() // DAY_MS * DAY_MS
    since = until - days * DAY_MS
    async with stage(bench, LIMITS, *_options(since, share)) as on:
        worker = await on.start_worker()
        await on.workers_are_up()
        started = time.monotonic()
        await add_backfills(on, SYMBOLS[:1], until)
        complete = await _completed(on, patience_s)
        wall_s = time.monotonic() - started
        worker.signal(signal.SIGTERM)  # which writes the last of the history of runs
        await worker.ended(60)
        if complete:
            series = Series.of(EXCHANGE, SYMBOLS[0], "1m")
            truth = Truth(SEED, listings(listed_ms=since))
            await asyncio.to_thread(check_stored, on.root, series, truth, since, until)
        runs = await on.database.job_runs.find({"type": "ohlcv_backfill"})
        entries = await on.journal()
    asked = [entry for entry in entries if _is_page(entry)]
    return Cost(
        wall_s=wall_s,
        complete=complete,
        runs=len(runs),
        recorded=sum(one["pages"] for one in runs),
        pages=len({entry["start_ms"] for entry in asked}),
        asked=len(asked),
        bad=sum("bad_answer" in entry["faults"] for entry in asked),
        refused=sum(entry["status"] == 429 for entry in entries),
        violations=sliding_violations(
            [entry["at_ms"] for entry in entries], LIMITS.rate_limit, LIMITS.rate_limit_period_ms
        ),
    )


def _options(since_ms: int, share: float) -> list[str]:
    listed = datetime.fromtimestamp(since_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    limit, period_ms = LIMITS.rate_limit, LIMITS.rate_limit_period_ms
    options = ["--latency-ms", "20", "--listed", listed, "--seed", str(SEED)]
    options += ["--limit", str(limit), "--period-ms", str(period_ms), "--enforce"]
    bad = fault_json(BadAnswer(endpoint="klines", probability=share))
    return [*options, "--faults", json.dumps([bad])]


def _is_page(entry: dict[str, Any]) -> bool:
    """A request for bars, and not for the first bar there is."""
    return entry["interval"] is not None and entry["limit"] != 1


async def _completed(on: Stage, patience_s: float) -> bool:
    queue = JobQueue(on.database)
    give_up = time.monotonic() + patience_s
    while (job := (await queue.find())[0]).state is not State.SUCCESS:
        if job.state is State.FAILED:
            raise RuntimeError(f"{job.symbol} failed: {job.document['stats']}")
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(0.02)
    return True
