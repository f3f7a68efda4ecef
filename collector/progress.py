"""Progress bars on a terminal: how far a piece of work is, its rate and remaining time."""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment

from collector.market.timeframe import Timeframe
from collector.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import ConsoleOptions, RenderableType

    from collector.jobs.job import Job
    from collector.operations.waiting import Shown

RATE_WINDOW_S = 10.0
PATIENCE_SECONDS = 2.0
"""A progress bar for less than this would only flicker."""
PIPED_WIDTH = 240
"""Columns of a table that is piped: wide enough to cut nothing off for grep and awk."""


class _PlainConsole(Console):
    """Prints every text as it is: without markup, and without what would move the cursor."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                lines = segment.text.split("\n")
                yield Segment("\n".join(map(printable, lines)), segment.style)

    def on_broken_pipe(self) -> None:
        """Leaves it to the caller what a closed output means; rich ends the program."""
        raise BrokenPipeError


def console(*, to_stderr: bool = False) -> Console:
    """The console for everything that is printed for users. What is piped is never cut off."""
    made = _PlainConsole(stderr=to_stderr)
    return made if made.is_terminal else _PlainConsole(stderr=to_stderr, width=PIPED_WIDTH)


@dataclass(slots=True)
class BarRate:
    """Bars a second over the last moments, from samples of a growing total."""

    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, at: float, total: int) -> float:
        """Adds a sample; returns the rate."""
        self._samples.append((at, total))
        while len(self._samples) > 2 and at - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


def slots_done(job: Mapping[str, Any]) -> tuple[int, int]:
    """How many bars of its history a backfill has fetched, and how many there are in all."""
    progress = job["progress"] or {}
    if "from_ms" not in progress or job["timeframe"] is None:
        return 0, 0
    step = Timeframe.parse(job["timeframe"]).ms
    from_ms, until_ms = progress["from_ms"], progress["until_ms"]
    return (job["cursor"]["since_ms"] - from_ms) // step, (until_ms - from_ms) // step


def _slots_done(job: Job) -> tuple[int, int]:
    cursor = {"since_ms": job.cursor.since_ms}
    progress = job.document.get("progress")
    return slots_done({"progress": progress, "timeframe": job.timeframe, "cursor": cursor})


@contextmanager
def late_progress(total: int, unit: str = "bars") -> Iterator[Any]:
    """A bar with rate and ETA on standard error, once the work has taken two seconds."""
    began = time.monotonic()
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]}"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
        console=console(to_stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    task = bar.add_task("export", total=max(1, total), unit=unit, rate=0.0)

    def reached(done: int) -> None:
        took = time.monotonic() - began
        if took > PATIENCE_SECONDS:
            bar.start()
        bar.update(task, completed=done, rate=done / max(took, 1e-6))

    try:
        yield reached
    finally:
        bar.stop()


@contextmanager
def progress_of_jobs() -> Iterator[Shown]:
    """A bar with rate and time left on standard error, where that is a terminal."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} bars"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
        console=console(to_stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    rate = BarRate()
    with bar:
        task = bar.add_task("", total=1, rate=0.0)

        def shown(jobs: Sequence[Job], at_rest: int) -> None:
            counts = [_slots_done(job) for job in jobs]
            done, total = sum(each[0] for each in counts), sum(each[1] for each in counts)
            waits = {str(job.document["waiting_for"]) for job in jobs} - {"None"}
            why = f", waits: {', '.join(sorted(waits))}" if waits else ""
            bar.update(
                task,
                description=f"{at_rest}/{len(jobs)} jobs{why}",
                completed=done,
                total=max(1, total),
                rate=max(0.0, rate.note(time.monotonic(), done)),
            )

        yield shown
