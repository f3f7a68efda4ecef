"""A year of minutes without a limit, beside `freqtrade download-data` on the same exchange.

Both are measured from the start of their process until the bars are stored, in turn, in one run,
and the bars of both must be those of the exchange. Our modules are compiled first, as pip does it
with freqtrade's. The exchange is a process of its own and has every page ready, so that it waits
for its clients and not they for it.

freqtrade keeps ccxt's pause between requests even where no limit asks for it. What is judged is
freqtrade as it is set up; without the pause is shown beside it.
"""

from __future__ import annotations

import asyncio
import compileall
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING

import aiohttp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.durations import DAY_MS, MINUTE_MS
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.interval import Interval
from collector.market.series import Series
from collector.simulated.listing import WELL_KNOWN, listings
from collector.simulated.truth import Truth
from collector.store.store import Store
from tests.bench import freqtrade
from tests.bench.harness import Figure
from tests.bench.peer_environment import NotInstalled
from tests.bench.stage import EXCHANGE, PLENTY, stage
from tests.support.processes import ROOT
from tests.support.stored_series import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.harness import Bench
    from tests.bench.stage import Cost, Stage

SYMBOL = WELL_KNOWN[0].symbol
PAGE = 1000
OURS, SET_UP, UNPAUSED = "collector", "freqtrade", "freqtrade, no pause"


@dataclass(frozen=True, slots=True)
class Taken:
    """What one contender took in one round, and how many of its bars are not the exchange's."""

    wall_s: float
    cost: Cost
    wrong: int


Rounds = dict[str, list[Taken]]


async def run(bench: Bench) -> list[Figure]:
    program = await asyncio.to_thread(_installed, bench)
    for folder in ("collector", "workers"):
        await asyncio.to_thread(compileall.compile_dir, ROOT / folder, quiet=1)
    days = bench.pick(365, 60)
    until_ms = SystemClock().wall_ms() // DAY_MS * DAY_MS
    stretch = Interval(until_ms - days * DAY_MS, until_ms)
    taken: Rounds = {}
    for number in range(bench.pick(3, 1)):
        for name, each in (await _round(bench, program, stretch, number)).items():
            taken.setdefault(name, []).append(each)
    _show(bench, taken, days * 1440)
    return _figures(bench, taken, days)


def _installed(bench: Bench) -> Path | None:
    try:
        return freqtrade.installed()
    except NotInstalled as error:
        bench.console.print(
            f"[bold red]NOT COMPARED: freqtrade {freqtrade.VERSION} cannot be installed[/]\n"
            f"{error}\n"
        )
        return None


async def _round(
    bench: Bench, program: Path | None, stretch: Interval, number: int
) -> dict[str, Taken]:
    """Everyone once, on one exchange; every second round the other way about."""
    listed = datetime.fromtimestamp(stretch.from_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    options = ("--latency-ms", "20", "--listed", listed, "--ready-pages", "10000")
    contenders = [OURS] if program is None else [OURS, SET_UP, UNPAUSED]
    if number % 2:
        contenders.reverse()
    taken = {}
    async with stage(bench, Limits(PLENTY, 1_000), *options) as on:
        await _made_ready(on, stretch)
        for name in contenders:
            if name == OURS:
                taken[name] = await _ours(on, stretch)
            else:
                assert program is not None
                taken[name] = await asyncio.to_thread(
                    _freqtrade, program, on.url, stretch, throttled=name == SET_UP
                )
    return taken


async def _made_ready(on: Stage, stretch: Interval) -> None:
    """Every page once: making it up costs the exchange more than most clients need to ask for it.

    freqtrade asks for one page after another. Our pages begin at the last bar of the one before.
    """
    market = {"symbol": SYMBOL.replace("/", ""), "interval": "1m", "limit": str(PAGE)}
    async with aiohttp.ClientSession(f"{on.url}/api/v3/") as session, asyncio.TaskGroup() as group:
        places = asyncio.Semaphore(32)

        async def fetched(start_ms: int) -> None:
            async with places:
                params = {**market, "startTime": str(start_ms)}
                async with session.get("klines", params=params) as answer:
                    await answer.read()

        for first_ms, bars in ((stretch.from_ms, PAGE), (stretch.from_ms - MINUTE_MS, PAGE - 1)):
            for start_ms in range(first_ms, stretch.to_ms, bars * MINUTE_MS):
                group.create_task(fetched(start_ms))


async def _ours(on: Stage, stretch: Interval) -> Taken:
    cursor = Cursor(until_ms=stretch.to_ms)
    queue = JobQueue(on.database)
    await queue.add(JobSpec(EXCHANGE, "ohlcv_backfill", SYMBOL, "1m", cursor=cursor))
    started = time.monotonic()
    worker = await on.start_worker()
    async with asyncio.timeout(300):
        while (await queue.find())[0].state is not State.SUCCESS:
            await asyncio.sleep(0.02)
    wall_s, cost = time.monotonic() - started, on.costs()["workers"]
    worker.signal(signal.SIGTERM)
    await worker.ended()
    series = Series.of(EXCHANGE, SYMBOL, "1m")
    bars = await asyncio.to_thread(Store(on.root).rows, series, 0, stretch.to_ms)
    return Taken(wall_s, cost, wrong_bars(bars.rename_columns(COLUMNS), stretch))


def _freqtrade(program: Path, url: str, stretch: Interval, *, throttled: bool) -> Taken:
    done = freqtrade.download(program, url, SYMBOL, stretch, throttled=throttled)
    ts = done.bars.column("date").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    bars = done.bars.drop_columns("date").append_column("ts", ts)
    # It asks for whole pages, so the last one reaches past the end.
    bars = bars.filter(pc.less(bars.column("ts"), stretch.to_ms))
    return Taken(done.wall_s, done.cost, wrong_bars(bars, stretch))


def wrong_bars(bars: pa.Table, stretch: Interval) -> int:
    """How many bars are lost, too many, or not the exchange's to the last bit."""
    truth = Truth(listings=listings(len(WELL_KNOWN), stretch.from_ms))
    true = truth.bars(SYMBOL, "1m", stretch.from_ms, stretch.to_ms).columns()
    if bars.num_rows != len(true["ts"]):
        return max(1, abs(bars.num_rows - len(true["ts"])))
    same = np.ones(bars.num_rows, dtype=bool)
    for name in COLUMNS.values():
        same &= bars.column(name).to_numpy() == true[name]
    return int((~same).sum())


def _show(bench: Bench, taken: Rounds, bars: int) -> None:
    bench.show(
        f"{bars:,} bars of one series, 20 ms away, no limit, {len(taken[OURS])} rounds",
        ["", "wall s", "CPU s", "CPU ms / 1000 bars", "peak MB", "wrong bars"],
        [
            [
                name,
                median(each.wall_s for each in rounds),
                median(each.cost.cpu_s for each in rounds),
                1e6 * median(each.cost.cpu_s for each in rounds) / bars,
                max(each.cost.peak_mb for each in rounds),
                str(max(each.wrong for each in rounds)),
            ]
            for name, rounds in taken.items()
        ],
    )


def _figures(bench: Bench, taken: Rounds, days: int) -> list[Figure]:
    name = f"backfill.{days} days"
    ours = taken[OURS]
    wrong = max(each.wrong for rounds in taken.values() for each in rounds)
    figures = [
        Figure(f"{name}: wrong bars", wrong, "", at_most=0),
        Figure(f"{name}: peak memory", max(e.cost.peak_mb for e in ours), " MB", at_most=300),
    ]
    bounds = {SET_UP: bench.pick((5.0, 1 / 3), (None, None)), UNPAUSED: (None, None)}
    for other, (faster, cheaper) in bounds.items():
        if other in taken:
            pairs = list(zip(taken[other], ours, strict=True))
            wall = median(theirs.wall_s / own.wall_s for theirs, own in pairs)
            cpu = median(own.cost.cpu_s / theirs.cost.cpu_s for theirs, own in pairs)
            figures += [
                Figure(f"{name}, wall of {other} / ours", wall, at_least=faster),
                Figure(f"{name}, our CPU / of {other}", cpu, at_most=cheaper),
            ]
    return figures
