"""What certainty costs: requests for a year of minutes with three trading halts, beyond one a page.

A market that trades every minute, one that nearly does, a sparse and a thin one. A backfill and the
gap jobs that follow from it run in this process, and the exchange counts what it is asked. Gap jobs
do not wait: their silences are dated back. In the end every stored bar must be the exchange's, and
every other slot settled.
"""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collector.backoff import Backoff
from collector.errors import JobConflict
from collector.jobs.states import State
from collector.market.interval import Interval, subtract
from collector.pipeline.evidence import LATEST_MS
from collector.simulated.faults.history import NoTrade
from tests.bench.harness import Figure
from tests.support.local_collector import DAY, MINUTE, Collecting, asked_again_after, collecting
from tests.support.until import until
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from tests.bench.harness import Bench

MARKETS = {
    "busy": (0.0, 0.01),
    "nearly busy": (0.0005, 0.02),
    "sparse": (0.7, 0.055),
    "thin": (0.95, 0.055),
}
"""The share of minutes without trades, and the greatest share of further requests."""
HALTS = 3
PAGE = 1_000
FIRST_BAR = 2
"""Requests that find the first bar and confirm it, once for a series of any length."""
MOST_ROUNDS = 10
CONFIG = WorkerConfig("ann", poll_seconds=0.1, retry=Backoff(0.05, 0.2))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one market took. `wrong` are bars that are not the exchange's, `left` missing slots."""

    requests: int
    hourly: int
    wrong: int
    left: int


async def run(bench: Bench) -> list[Figure]:
    days = bench.pick(365, 60)
    pages = -(-days * DAY // MINUTE // PAGE)
    costs = {name: await _cost(bench, days, share) for name, (share, _) in MARKETS.items()}
    bench.show(
        f"{days} days of minutes with {HALTS} halts, {pages} pages of {PAGE:,} slots",
        ["market", "requests", "of these hourly", "wrong bars", "missing slots"],
        [
            [name, *map(str, (cost.requests, cost.hourly, cost.wrong, cost.left))]
            for name, cost in costs.items()
        ],
    )
    figures = []
    for name, (_, most) in MARKETS.items():
        cost, title = costs[name], f"questions.{days} days, {name}"
        further = (cost.requests - FIRST_BAR) / pages - 1
        figures += [
            Figure(f"{title}: wrong or missing", cost.wrong + cost.left, "", at_most=0),
            # Three halts are a larger share of a shorter time.
            Figure(f"{title}: further requests", further, "", at_most=bench.pick(most, None)),
        ]
    return figures


async def _cost(bench: Bench, days: int, share: float) -> Cost:
    with tempfile.TemporaryDirectory(prefix="collector-lake-") as root:
        async with (
            bench.database() as database,
            collecting(database, Path(root), days=days + 1, config=CONFIG) as c,
        ):
            whole = Interval(c.first_ms, c.first_ms + days * DAY)
            c.exchange.faults.add(NoTrade(spans=_halts(whole)))
            if share:
                c.exchange.faults.add(NoTrade(ratio=share))
            job = await c.backfill(whole.to_ms)
            await c.until(job, lambda job: job.state is State.SUCCESS, seconds=600)
            for _ in range(MOST_ROUNDS):
                if not await _asked_again(c):
                    break
            truth = c.truth(whole.from_ms, whole.to_ms)
            stored = c.stored(whole.from_ms, whole.to_ms)
            # Before the first trade there is nothing to be known.
            expected = Interval(truth[0][0], whole.to_ms)
            left = subtract([expected], c.store.covered(c.series))
            asked = [entry.interval for entry in c.journal()]
            return Cost(
                len(asked),
                asked.count("1h"),
                len(set(stored) ^ set(truth)),
                sum(part.to_ms - part.from_ms for part in left) // MINUTE,
            )


async def _asked_again(c: Collecting) -> bool:
    """Runs every gap job once more, as if the longest wait were over; False when there is none."""
    jobs = await c.queue.find({"type": "gap_backfill"})
    for job in jobs:
        runs = job.document["stats"]["success"]
        with suppress(JobConflict):  # It has just run by itself, and is gone.
            if (job.document.get("progress") or {}).get("silences"):
                await asked_again_after(c, job, LATEST_MS)
            else:
                await c.queue.run(job.id)

        async def has_run(job_id: object = job.id, runs: int = runs) -> bool:
            found = await c.database.jobs.find_one({"_id": job_id, "status": {"$ne": "deleted"}})
            return found is None or found["stats"]["success"] > runs

        await until(has_run, "the gap job has run")
    return bool(jobs)


def _halts(whole: Interval) -> tuple[tuple[int, int], ...]:
    rng = random.Random(7)
    spans = []
    for _ in range(HALTS):
        start = rng.randrange(whole.from_ms + DAY, whole.to_ms - DAY, MINUTE)
        spans.append((start, start + rng.randrange(20, 360) * MINUTE))
    return tuple(spans)
