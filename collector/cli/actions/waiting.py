"""Waiting for jobs that workers do, with a bar that shows how far they are."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from collector.cli.answer import console
from collector.cli.board import Pace, slots_done
from collector.connectors.registry import ConnectorRegistry
from collector.errors import BadRequest, ExchangeBlocked, ExchangeUnavailable, NeedsOperator
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from bson import ObjectId

    from collector.errors import CollectorError
    from collector.jobs.job import Job
    from collector.mongo.client import Database

LOOK_SECONDS = 0.25
_AT_WORK = (State.QUEUED, State.RUNNING, State.WAITING)
_SETTLED = (State.SUCCESS, State.FAILED)


class Shown(Protocol):
    """Hears of every look at the jobs."""

    def __call__(self, jobs: Sequence[Job], at_rest: int) -> None: ...


class Waiting:
    """Looks at jobs until each has come to rest."""

    def __init__(
        self,
        database: Database,
        exchange_id: str,
        *,
        max_retries: int,
        see_to_it: Callable[[], Awaitable[None]],
        shown: Shown,
    ) -> None:
        """`see_to_it` makes sure that somebody works."""
        self._database = database
        self._exchange_id = exchange_id
        self._max_retries = max_retries
        self._see_to_it = see_to_it
        self._shown = shown
        self._queue = JobQueue(database)
        self._registry = ConnectorRegistry(database)

    async def for_all(self, job_ids: Sequence[ObjectId]) -> list[Job]:
        """The jobs as they came to rest; those that vanished are not among them.

        Raises what the first of them failed with, or what keeps it from being done.
        """
        while job_ids:
            jobs = await self._queue.of_ids(job_ids)
            for job in jobs:
                await self._check(job)
            at_work = [job for job in jobs if not at_rest(job)]
            self._shown(jobs, len(job_ids) - len(at_work))
            if not at_work:
                return jobs
            await self._check_connector()
            await self._see_to_it()
            await asyncio.sleep(LOOK_SECONDS)
        return []

    async def _check(self, job: Job) -> None:
        error = str(job.document["stats"]["last_error"])
        if job.status is Status.PAUSED and job.state is State.FAILED:
            raise BadRequest(f"{job.symbol}: {error}")
        if job.status is Status.PAUSED and job.state not in _SETTLED:
            raise NeedsOperator(f"{job.symbol}: paused; `collector job resume {job.id}` goes on")
        if job.document["waiting_for"] == "retry" and job.attempt >= self._max_retries:
            raise await self._gave_up(job, error)

    async def _gave_up(self, job: Job, error: str) -> CollectorError:
        said = f"{job.symbol}: failed {job.attempt} times in a row, the last time: {error}"
        connector = await self._registry.get(self._exchange_id)
        stopped = connector.stopped(self._database.server_clock.now_ms())
        if stopped is not None:
            return ExchangeBlocked(self._exchange_id, f"{stopped.reason}; {said}")
        return ExchangeUnavailable(said)

    async def _check_connector(self) -> None:
        connector = await self._registry.get(self._exchange_id)
        stopped = connector.stopped(self._database.server_clock.now_ms())
        if stopped is not None and stopped.reason == "paused":
            name = self._exchange_id
            raise NeedsOperator(f"{name} is paused; `collector connector resume {name}` goes on")


def at_rest(job: Job) -> bool:
    """Whether nobody will touch it before its schedule says so, if ever."""
    if job.status is Status.DELETED or job.state in _SETTLED:
        return True
    waits = job.state in _AT_WORK or job.document["waiting_for"] is not None
    return job.type == "ohlcv_incremental" and not waits


@contextmanager
def progress_of_jobs() -> Iterator[Shown]:
    """A bar with rate and time left on standard error, where that is a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} bars"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
        console=console(to_stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    pace = Pace()
    with bar:
        task = bar.add_task("", total=1, rate=0.0)

        def shown(jobs: Sequence[Job], at_rest: int) -> None:
            counts = [slots_done(job) for job in jobs]
            done, total = sum(each[0] for each in counts), sum(each[1] for each in counts)
            waits = {str(job.document["waiting_for"]) for job in jobs} - {"None"}
            why = f", waits: {', '.join(sorted(waits))}" if waits else ""
            bar.update(
                task,
                description=f"{at_rest}/{len(jobs)} jobs{why}",
                completed=done,
                total=max(1, total),
                rate=max(0.0, pace.note(time.monotonic(), done)),
            )

        yield shown
