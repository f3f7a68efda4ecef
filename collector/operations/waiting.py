"""Waiting for jobs that workers do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from collector.connectors.registry import ConnectorRegistry
from collector.errors import BadRequest, ExchangeBlocked, ExchangeUnavailable, NeedsOperator
from collector.jobs import types
from collector.jobs.queue import JobQueue
from collector.jobs.settlement import ASKED_LATER
from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bson import ObjectId

    from collector.errors import CollectorError
    from collector.jobs.job import Job
    from collector.mongo.client import Database

LOOK_SECONDS = 0.25
_AT_WORK = (State.QUEUED, State.RUNNING, State.WAITING)
_AT_REST = (State.SUCCESS, State.FAILED)


class Shown(Protocol):
    """Called after every look at the jobs."""

    def __call__(self, jobs: Sequence[Job], at_rest: int) -> None: ...


class Waiting:
    """Polls jobs until each is at rest."""

    def __init__(
        self,
        database: Database,
        exchange_id: str,
        *,
        max_retries: int,
        see_to_it: Callable[[], Awaitable[None]],
        shown: Shown,
    ) -> None:
        """`see_to_it` makes sure that a worker runs."""
        self._database = database
        self._exchange_id = exchange_id
        self._max_retries = max_retries
        self._see_to_it = see_to_it
        self._shown = shown
        self._queue = JobQueue(database)
        self._registry = ConnectorRegistry(database)

    async def for_all(self, job_ids: Sequence[ObjectId]) -> list[Job]:
        """The jobs as they came to rest; those that vanished are not among them.

        Raises the error of the first that failed, or the reason why it cannot finish.
        """
        while job_ids:
            jobs = await self._queue.of_ids(job_ids)
            for job in jobs:
                await self._check(job)
            now_ms = self._database.server_clock.now_ms()
            at_work = [job for job in jobs if not at_rest(job, now_ms)]
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
        if job.status is Status.PAUSED and job.state not in _AT_REST:
            raise NeedsOperator(f"{job.symbol}: paused; `collector job resume {job.id}` goes on")
        if job.document["waiting_for"] == "retry" and job.attempt >= self._max_retries:
            raise await self._gave_up(job, error)

    async def _gave_up(self, job: Job, error: str) -> CollectorError:
        message = f"{job.symbol}: failed {job.attempt} times in a row, the last time: {error}"
        connector = await self._registry.get(self._exchange_id)
        stopped = connector.stopped(self._database.server_clock.now_ms())
        if stopped is not None:
            return ExchangeBlocked(self._exchange_id, f"{stopped.reason}; {message}")
        return ExchangeUnavailable(message)

    async def _check_connector(self) -> None:
        connector = await self._registry.get(self._exchange_id)
        stopped = connector.stopped(self._database.server_clock.now_ms())
        if stopped is not None and stopped.reason == "paused":
            name = self._exchange_id
            raise NeedsOperator(f"{name} is paused; `collector connector resume {name}` goes on")


def at_rest(job: Job, now_ms: int) -> bool:
    """Whether no worker will run it before its schedule, if ever.

    A gap job that was made to ask about an open silence later is at rest until then.
    """
    if job.status is Status.DELETED or job.state in _AT_REST:
        return True
    if job.type == types.GAP_BACKFILL.name and job.state is State.IDLE and job.next_run_at > now_ms:
        return job.document["waiting_for"] in (None, ASKED_LATER)
    if job.document["waiting_for"] == ASKED_LATER:
        return job.state not in _AT_WORK
    waits = job.state in _AT_WORK or job.document["waiting_for"] is not None
    return job.type == types.OHLCV_INCREMENTAL.name and not waits
