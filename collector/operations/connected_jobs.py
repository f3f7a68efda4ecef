"""Jobs and their connector: no active job is left without one, even under concurrency.

Adding a job and removing a connector check in opposite orders. The one adds the job first and then
looks for the connector; the other announces the removal first and then looks for jobs. So at least
one of them sees the other: a job that was not there when the jobs were counted was added after the
announcement, and its creator finds that and withdraws it. Neither waits for the other. When both
saw each other, both are refused, and may try again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from collector.connectors.removal import Removal
from collector.errors import ActiveJobs, DatabaseUnavailable, JobConflict
from collector.jobs import types
from collector.jobs.network import network_of
from collector.jobs.queue import JobQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bson import ObjectId

    from collector.connectors.connector import Connector
    from collector.jobs.job import Job, JobSpec
    from collector.mongo.client import Database, Document

AT_ONCE = 32


async def add(database: Database, specs: Sequence[JobSpec]) -> list[tuple[Job, bool]]:
    """The jobs, each created if there is none like it, and whether it was created.

    JobConflict when a connector is gone or being removed: then none of its jobs was created.
    """
    queue, turn = JobQueue(database), asyncio.Semaphore(AT_ONCE)

    async def add_one(spec: JobSpec) -> tuple[Job, bool]:
        async with turn:
            return await queue.add(spec)

    outcomes = await asyncio.gather(*(add_one(spec) for spec in specs), return_exceptions=True)
    jobs = [each for each in outcomes if not isinstance(each, BaseException)]
    removal, exchange_ids = Removal(database), {spec.exchange_id for spec in specs}
    gone = sorted([each for each in exchange_ids if not await removal.stands(each)])
    for job, made in jobs:
        if made and job.exchange_id in gone:
            with suppress(JobConflict):  # The removal of the connector was faster.
                await queue.delete(job.id)
    if gone:
        raise _gone(", ".join(gone))
    for each in outcomes:
        if isinstance(each, BaseException):
            raise each
    return jobs


async def resume(
    database: Database, job_id: str | ObjectId, *, only_if: Document | None = None
) -> Job:
    """Lets it run again, if there is a connector for it."""
    return await _started(database, job_id, partial(JobQueue(database).resume, only_if=only_if))


async def run(
    database: Database, job_id: str | ObjectId, *, only_if: Document | None = None
) -> Job:
    """Starts it now, if there is a connector for it."""
    return await _started(database, job_id, partial(JobQueue(database).run, only_if=only_if))


async def remove_connector(
    database: Database,
    exchange_id: str,
    *,
    cascade: bool = False,
    only_if: Document | None = None,
) -> tuple[Connector, int]:
    """Deletes a connector and its duties; how many jobs went with it.

    ActiveJobs when it has others that are active, unless they go with it. Paused ones stay, to be
    resumed when there is a connector again.
    """
    queue, removal = JobQueue(database), Removal(database)
    token = await removal.announce(exchange_id, only_if=only_if)
    try:
        if not cascade:
            active = await queue.active_of_exchange(exchange_id, besides=types.belongings())
            if active:
                raise ActiveJobs(exchange_id, active)
        own = None if cascade else types.belongings()
        gone = await queue.delete_of_exchange(exchange_id, only_types=own)
        connector = await removal.finish(exchange_id, token)
        if connector is None:
            raise JobConflict(
                f"{exchange_id} is being removed by another process, or it took too long"
            )
    except BaseException:
        with suppress(DatabaseUnavailable):  # The announcement runs out by itself.
            await removal.give_up(exchange_id, token)
        raise
    return connector, gone


async def _started(
    database: Database, job_id: str | ObjectId, start: Callable[[ObjectId], Awaitable[Job]]
) -> Job:
    queue, removal = JobQueue(database), Removal(database)
    job = await queue.get(job_id)
    if network_of(job.exchange_id) is not None:
        return await start(job.id)  # A network has no connector.
    if not await removal.stands(job.exchange_id):
        raise _gone(job.exchange_id)
    started = await start(job.id)
    if not await removal.stands(job.exchange_id):
        with suppress(JobConflict):  # The removal of the connector was faster.
            await queue.pause(job.id)
        raise _gone(job.exchange_id)
    return started


def _gone(exchange_id: str) -> JobConflict:
    return JobConflict(f"the connector of {exchange_id} is gone or being removed")
