"""Changes to an existing job: pause, resume, run, delete, change.

A deleted job appears in lists only: here it is not found. With `only_if`, settings that the caller
knows (`Job.settings`), a job that has others by now is left alone: Changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.errors import NotFound
from collector.jobs import types
from collector.jobs.job import Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import Status
from collector.operations import connected_jobs
from collector.operations.new_job import check_params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.jobs.schedule import Schedule
    from collector.mongo.client import Database, Document


@dataclass(frozen=True, slots=True)
class JobEdit:
    """What is to change. A field in `usual` goes back to the default of the type."""

    schedule: Schedule | None = None
    priority: int | None = None
    params: Mapping[str, Any] | None = None
    usual: frozenset[str] = frozenset()


async def live_job(database: Database, job_id: str) -> Job:
    """The job. NotFound when it is deleted."""
    job = await JobQueue(database).get(job_id)
    if job.status is Status.DELETED:
        raise NotFound(f"job {job_id} was deleted")
    return job


async def pause(database: Database, job_id: str, *, only_if: Document | None = None) -> Job:
    """Stops it; a running one stops after its current page. Pausing twice is fine."""
    job = await live_job(database, job_id)
    return await JobQueue(database).pause(job.id, only_if=only_if)


async def resume(database: Database, job_id: str, *, only_if: Document | None = None) -> Job:
    """Lets it run again, starting now, if there is a connector for it."""
    job = await live_job(database, job_id)
    return await connected_jobs.resume(database, job.id, only_if=only_if)


async def run(database: Database, job_id: str, *, only_if: Document | None = None) -> Job:
    """Starts it now, whatever its schedule, if there is a connector for it."""
    job = await live_job(database, job_id)
    return await connected_jobs.run(database, job.id, only_if=only_if)


async def delete(database: Database, job_id: str, *, only_if: Document | None = None) -> Job:
    """Soft delete; what it collected stays."""
    job = await live_job(database, job_id)
    return await JobQueue(database).delete(job.id, only_if=only_if)


async def change(
    database: Database,
    job: Job,
    wanted: JobEdit,
    spread: float,
    *,
    only_if: Document | None = None,
) -> Job:
    """Sets what is given. `spread` in [0, 1) places its next run within the schedule's jitter."""
    row = types.find(job.type)
    if row is not None and wanted.params is not None:
        check_params(row, wanted.params)
    plain = JobSpec(job.exchange_id, job.type, job.symbol, job.timeframe)
    schedule = plain.effective_schedule if "schedule" in wanted.usual else wanted.schedule
    priority = plain.effective_priority if "priority" in wanted.usual else wanted.priority
    next_run_ms = None
    if schedule is not None:
        next_run_ms = schedule.next_run(await database.now_ms(), spread)
    return await JobQueue(database).change(
        job.id,
        schedule=schedule,
        next_run_ms=next_run_ms,
        priority=priority,
        params=wanted.params,
        only_if=only_if,
    )
