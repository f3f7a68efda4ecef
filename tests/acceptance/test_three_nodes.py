"""A replica set of three under two workers: one fault after the other, and what each of them costs.

The workers fetch backfills and live series of a simulated exchange. After every fault all of them
have to go on by themselves, and what must never happen is looked for where it would show: in the
exchange's journal, in the lake, and in MongoDB's own log of what was written to the jobs.
"""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.connectors.window import Window
from collector.market.series import Series
from collector.mongo.client import Database
from collector.simulated.windows import max_in_window
from migrations import runner
from tests.acceptance.job_diary import JobDiary, LeaseLog
from tests.acceptance.live_jobs import WITHIN_SECONDS, LiveJobs
from tests.acceptance.stepped_mongo import require_stepped_clocks
from tests.acceptance.three_nodes import three_nodes
from tests.support.fleet import LONG, PAGES_OF_100, Fleet, fleet
from tests.support.stored_series import WrongBars, wrong_bars

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
    from pathlib import Path

    import pytest

    from collector.jobs.job import Job
    from tests.acceptance.three_nodes import ThreeNodes
    from tests.support.processes import Process

HOUR = 3_600.0
A_LITTLE = 1.5
"""Seconds by which a clock is stepped: more than any margin, too little to move schedules."""
WORKERS = ("worker1", "worker2")
LIMITS = Limits(20, 2_000, windows=(Window("requests", 600, 60_000),) if LONG else ())
LEASE_MS = 10_000 if LONG else 3_000
ELECTION_MS = 10_000 if LONG else 2_000
"""MongoDB's own default, and a shorter one for the short form."""
BACKFILLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT") if LONG else ("BTC/USDT",)
DAYS = 130 if LONG else 40
LIVE = 3
AFTERWARDS_SECONDS = 3.0
"""More than the shorter window: what a fault has brought about there has been seen."""


@dataclass
class Stage:
    """Everything that a fault may hurt, and the witnesses."""

    fleet: Fleet
    nodes: ThreeNodes
    live: LiveJobs
    backfills: list[Job]
    log: LeaseLog
    stack: AsyncExitStack
    """Ends what was started."""
    processes: list[Process] = field(default_factory=list)
    """All workers that were ever started; the last two are at work."""

    async def start_workers(self) -> None:
        for name in WORKERS:
            process = await self.stack.enter_async_context(self.fleet.worker())
            self.nodes.wires.names[process.pid] = name
            self.processes.append(process)

    async def kill_workers(self) -> None:
        for process in self.processes[-len(WORKERS) :]:
            process.signal(signal.SIGKILL)
            await process.ended()
            del self.nodes.wires.names[process.pid]
        await self.log.read()
        self.log.workers_died()

    async def step_clock(self, seconds_ahead: float) -> None:
        await self.log.read()
        self.log.clock_stepped(seconds_ahead)
        self.nodes.set_clock(seconds_ahead)

    async def goes_on(self) -> None:
        """Returns when every job has got further; nobody helps them."""
        await self.nodes.settled()
        pages = [(await self.fleet.queue.get(job.id)).cursor.page for job in self.backfills]
        await self.live.go_on()
        for job, page in zip(self.backfills, pages, strict=True):
            await self.fleet.reaches(job, page + 2, WITHIN_SECONDS)

    async def wrong_bars(self) -> WrongBars:
        """In all series together, up to where each has come."""
        began = {job.id: job.cursor.since_ms for job in self.live.jobs}
        jobs = [*await self.live.now(), *[await self.fleet.queue.get(j.id) for j in self.backfills]]
        found = [
            await asyncio.to_thread(
                wrong_bars,
                self.fleet.root,
                Series.of(job.exchange_id, str(job.symbol), "1m"),
                self.fleet.exchange.truth,
                began.get(job.id, self.fleet.first_ms),
                job.cursor.since_ms,
            )
            for job in jobs
        ]
        return WrongBars(*map(sum, zip(*found, strict=True)))

    def lines(self, event: str) -> int:
        """How often any worker has logged it."""
        return sum(len(process.lines(event)) for process in self.processes)

    @property
    def steps(self) -> int:
        """Log lines that speak of a step of the clock."""
        return self.lines("mongodb_clock_set") + self.lines("schedules_moved")


# -- faults -----------------------------------------------------------------------------------


async def nothing(stage: Stage, *, seconds: float) -> None:
    await asyncio.sleep(seconds)


async def kill_primary(stage: Stage, *, seconds: float) -> None:
    primary = await stage.nodes.primary()
    await primary.kill()
    await asyncio.sleep(seconds)
    await primary.start()


async def kill_two(stage: Stage, *, seconds: float) -> None:
    killed = [await stage.nodes.primary(), (await stage.nodes.others())[0]]
    for member in killed:
        await member.kill()
    await asyncio.sleep(seconds)
    for member in killed:
        await member.start()


async def step_down(stage: Stage) -> None:
    await stage.nodes.step_down()


async def freeze(stage: Stage, *, seconds: float, members: int = 1) -> None:
    """The primary first."""
    frozen = [await stage.nodes.primary(), *await stage.nodes.others()][:members]
    for member in frozen:
        member.freeze()
    await asyncio.sleep(seconds)
    for member in frozen:
        member.thaw()


async def isolate_primary(stage: Stage, *, seconds: float) -> None:
    """The other members do not hear of it; workers hear of all."""
    primary = await stage.nodes.primary()
    stage.nodes.wires.cut([primary.name], stage.nodes.names)
    await asyncio.sleep(seconds)
    stage.nodes.wires.join()


async def cut_off(stage: Stage, *, seconds: float, workers: Sequence[str]) -> None:
    stage.nodes.wires.cut(workers, stage.nodes.names)
    await asyncio.sleep(seconds)
    stage.nodes.wires.join()


async def lose_answers(stage: Stage, *, seconds: float, share: float) -> None:
    stage.nodes.wires.losing = share
    await asyncio.sleep(seconds)
    stage.nodes.wires.losing = 0.0


async def step_clock(stage: Stage, *, to: float, restart: bool) -> None:
    if restart:
        await stage.kill_workers()
    await stage.step_clock(to)
    if restart:
        await stage.start_workers()


@dataclass(frozen=True)
class Fault:
    """Something that happens to the database."""

    name: str
    strike: Callable[[Stage], Awaitable[None]]
    clock: bool = False
    """Whether MongoDB's clock is stepped."""
    unseen: bool = False
    """Whether nobody can know of it: a worker that is started after a step ahead, and is the first
    to ask, may give out the budget a second time."""


def clock_faults(*, restart: bool) -> list[Fault]:
    """Steps to and fro; the last one leaves the clock right."""
    suffix = ", workers killed and started" if restart else ""
    steps = {
        "1.5 s ahead": A_LITTLE,
        "1.5 s back": 0.0,
        "1.5 s back again": -A_LITTLE,
        "1.5 s ahead again": 0.0,
        "an hour ahead": HOUR,
        "an hour back": 0.0,
        "an hour back again": -HOUR,
        "an hour ahead again": 0.0,
    }
    return [
        Fault(
            f"clock {name}{suffix}",
            partial(step_clock, to=to, restart=restart),
            clock=True,
            unseen=restart and "ahead" in name,
        )
        for name, to in steps.items()
    ]


FAULTS = (
    [
        Fault("nothing", partial(nothing, seconds=20)),
        Fault("primary killed, back after 15 s", partial(kill_primary, seconds=15)),
        Fault("primary steps down", step_down),
        Fault("primary frozen for 12 s", partial(freeze, seconds=12)),
        Fault("primary frozen for 25 s", partial(freeze, seconds=25)),
        Fault("primary cut off from the others, 25 s", partial(isolate_primary, seconds=25)),
        Fault("one worker cut off, 25 s", partial(cut_off, seconds=25, workers=WORKERS[:1])),
        Fault("both workers cut off, 25 s", partial(cut_off, seconds=25, workers=WORKERS)),
        Fault("two of three killed, back after 15 s", partial(kill_two, seconds=15)),
        Fault("two of three frozen for 12 s", partial(freeze, seconds=12, members=2)),
        Fault("30% of answers lost, 30 s", partial(lose_answers, seconds=30, share=0.3)),
        *clock_faults(restart=False),
        *clock_faults(restart=True),
    ]
    if LONG
    else [
        Fault("primary killed, back after 5 s", partial(kill_primary, seconds=5)),
        Fault("30% of answers lost, 5 s", partial(lose_answers, seconds=5, share=0.3)),
        Fault("clock an hour ahead", partial(step_clock, to=HOUR, restart=False), clock=True),
        Fault(
            "clock an hour back, workers killed and started",
            partial(step_clock, to=0.0, restart=True),
            clock=True,
        ),
    ]
)


# -- figures ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What one fault cost; the names are the head of the table. Seconds, unless it is a count."""

    fault: str
    lasted: float
    """The fault itself, and until every job had got further."""
    requests: int
    pause: float
    """The longest without a request."""
    unowned: float
    """The longest for which a job was due, or its lease was over, and no worker had it."""
    window: str
    """The fullest windows, of their limits."""
    wrong: int
    """Bars that are missing, too many, or not as they happened."""
    moved: int
    """Jobs whose schedule was moved."""
    steps: int
    """Log lines that speak of a step of the clock."""
    lost: int
    """Leases that workers have lost."""


async def suffer(stage: Stage, fault: Fault) -> tuple[Row, list[str]]:
    """The cost of one fault, and what is wrong after it."""
    steps, lost = stage.steps, stage.lines("lease_lost")
    exchange, log = stage.fleet.exchange, stage.log
    await log.read()
    log.begin_figures()
    began, began_ms = time.monotonic(), exchange.now_ms()
    await fault.strike(stage)
    await stage.goes_on()
    lasted = time.monotonic() - began
    await asyncio.sleep(AFTERWARDS_SECONDS)
    times = exchange.journal.times()
    ours = [at_ms for at_ms in times if at_ms >= began_ms]
    fullest = {
        window: max_in_window(
            [t for t in times if t > began_ms - window.period_ms], window.period_ms
        )
        for window in LIMITS.all_windows
    }
    pauses = [after - before for before, after in pairwise([began_ms, *ours, exchange.now_ms()])]
    await log.read()
    wrong = await stage.wrong_bars()
    row = Row(
        fault.name,
        round(lasted, 1),
        len(ours),
        round(max(pauses) / 1000, 1),
        round(log.longest_unowned(), 1),
        ", ".join(f"{most} of {window.limit}" for window, most in fullest.items()),
        sum(wrong),
        log.moved,
        stage.steps - steps,
        stage.lines("lease_lost") - lost,
    )
    complaints = [*log.complaints]
    log.complaints.clear()
    allowed = 2 if fault.unseen else 1
    complaints += [
        f"{window}: {most}" for window, most in fullest.items() if most > allowed * window.limit
    ]
    if sum(wrong):
        complaints.append(f"{wrong}")
    if not fault.clock and row.moved + row.steps:
        complaints.append("it was taken for a step of the clock")
    if not log.sent:
        complaints.append("of no write is it known which process sent it")
    return row, [f"{fault.name}: {complaint}" for complaint in complaints]


def line(cells: Iterable[object]) -> str:
    """Of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


# -- the test ---------------------------------------------------------------------------------


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    """Two workers at work on a set of three."""
    settings = {"COLLECTOR_WORKER__LEASE_TTL_MS": str(LEASE_MS), **PAGES_OF_100}
    async with (
        three_nodes(folder, election_ms=ELECTION_MS) as nodes,
        Database(nodes.uri, "test") as database,
    ):
        await database.reach()
        await runner.up(database)
        async with (
            fleet(
                database,
                nodes.uri,
                folder / "lake",
                limits=LIMITS,
                days=DAYS,
                markets=len(BACKFILLS) + LIVE,
                **settings,
            ) as f,
            AsyncExitStack() as processes,
        ):
            live = await LiveJobs.add(f, LIVE)
            backfills = [await f.backfill(symbol, days=DAYS) for symbol in BACKFILLS]
            log = await LeaseLog.begin(await JobDiary.begin(database))
            stage = Stage(f, nodes, live, backfills, log, processes)
            await stage.start_workers()
            await stage.goes_on()
            yield stage


async def test_whatever_happens_to_the_database_everything_goes_on_and_nothing_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_stepped_clocks()
    complaints: list[str] = []
    columns = [column.name for column in fields(Row)]
    with capsys.disabled():
        print("", line(columns), line("---" for _ in columns), sep="\n")
    async with staged(tmp_path) as stage:
        for fault in FAULTS:
            row, found = await suffer(stage, fault)
            complaints += found
            with capsys.disabled():
                print(line(astuple(row)), flush=True)
        stage.fleet.check_no_half_written_file_is_visible()
    assert not complaints, "\n".join(complaints)
