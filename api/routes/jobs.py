"""`/api/v1/jobs`: what is to be collected."""

import random
from typing import Annotated, Any

from bson import ObjectId
from fastapi import APIRouter, Path, Query, Response

from api.deps import Parts, Services
from api.job_request import job_spec
from api.openapi import job_links, problems
from api.problems import unprocessable
from api.roles import ADMIN, OPERATOR, VIEWER
from api.schemas.jobs import JobChange, JobFilters, JobPage, JobReplacement, JobView, NewJob
from api.schemas.schedules import schedule_of
from collector.errors import NotFound
from collector.jobs.job import Job, JobSpec
from collector.jobs.states import Status

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

JobIdPath = Annotated[
    str, Path(description="The job's `id`", examples=["65f0c0ffee0000000000beef"])
]
_MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": JobView, "links": job_links()},
    201: {"links": job_links()},
}


@router.post(
    "",
    summary="Make a job, or get the same one there is",
    dependencies=[OPERATOR],
    response_model=JobView,
    status_code=201,
    responses={**_MADE, **problems(409)},
)
async def make_job(body: NewJob, parts: Parts, response: Response) -> JobView:
    """201 when it was made, 200 with its twin, unchanged, when there is one that is not deleted.

    `ohlcv_backfill` ends where it was made unless `until` says otherwise; `ohlcv_incremental`
    begins there; `gap_backfill` needs both ends.
    """
    spec = await job_spec(body, parts)
    job, made = await parts.queue.add(spec)
    response.status_code = 201 if made else 200
    return JobView.of(job)


@router.get("", summary="List jobs", dependencies=[VIEWER])
async def list_jobs(asked: Annotated[JobFilters, Query()], parts: Parts) -> JobPage:
    """In the order they were made."""
    jobs = await parts.queue.find(
        asked.values(),
        after=ObjectId(asked.cursor) if asked.cursor else None,
        limit=asked.limit + 1,
        newest_first=asked.order == "newest",
    )
    page = jobs[: asked.limit]
    more = len(jobs) > len(page)
    return JobPage(
        items=[JobView.of(job) for job in page],
        next_cursor=str(page[-1].id) if more else None,
    )


@router.get("/{job_id}", summary="Show a job", dependencies=[VIEWER], responses=problems(404))
async def show_job(job_id: JobIdPath, parts: Parts) -> JobView:
    return JobView.of(await live_job(parts, job_id))


@router.put(
    "/{job_id}",
    summary="Replace a job's settings",
    dependencies=[OPERATOR],
    responses=problems(404),
)
async def replace_job(job_id: JobIdPath, body: JobReplacement, parts: Parts) -> JobView:
    """Schedule, priority and params as sent; what is left out goes back to the type's own."""
    job = await live_job(parts, job_id)
    for name in ("exchange_id", "type", "symbol", "timeframe"):
        sent = getattr(body, name)
        if sent is not None and sent != getattr(job, name):
            raise unprocessable(name, "cannot_change", f"{name} of a job cannot change")
    return await _changed(parts, job, body, {"schedule", "priority", "params"})


@router.patch(
    "/{job_id}", summary="Change a job's settings", dependencies=[OPERATOR], responses=problems(404)
)
async def change_job(job_id: JobIdPath, body: JobChange, parts: Parts) -> JobView:
    """What is left out stays. A run under way ends by the old schedule."""
    return await _changed(parts, await live_job(parts, job_id), body, body.model_fields_set)


@router.delete(
    "/{job_id}", summary="Delete a job", dependencies=[ADMIN], responses=problems(404, 409)
)
async def delete_job(job_id: JobIdPath, parts: Parts) -> JobView:
    """A soft delete: a running one stops after the page in hand, and its key is free again."""
    await live_job(parts, job_id)
    return JobView.of(await parts.queue.delete(job_id))


@router.post(
    "/{job_id}/pause", summary="Pause a job", dependencies=[OPERATOR], responses=problems(404, 409)
)
async def pause_job(job_id: JobIdPath, parts: Parts) -> JobView:
    """A running one stops after the page in hand, its cursor kept. Pausing twice is fine."""
    await live_job(parts, job_id)
    return JobView.of(await parts.queue.pause(job_id))


@router.post(
    "/{job_id}/resume",
    summary="Resume a job",
    dependencies=[OPERATOR],
    responses=problems(404, 409),
)
async def resume_job(job_id: JobIdPath, parts: Parts) -> JobView:
    """It starts now, from where it was. Resuming an active job is fine."""
    await live_job(parts, job_id)
    return JobView.of(await parts.queue.resume(job_id))


@router.post(
    "/{job_id}/run", summary="Run a job now", dependencies=[OPERATOR], responses=problems(404, 409)
)
async def run_job(job_id: JobIdPath, parts: Parts) -> JobView:
    """Whatever its schedule says. A running one is left to it; a paused one must be resumed."""
    await live_job(parts, job_id)
    return JobView.of(await parts.queue.run(job_id))


async def live_job(parts: Services, job_id: str) -> Job:
    """The job, unless it is deleted: those are for lists only."""
    job = await parts.queue.get(job_id)
    if job.status is Status.DELETED:
        raise NotFound(f"job {job_id} was deleted")
    return job


async def _changed(parts: Services, job: Job, body: JobChange, names: set[str]) -> JobView:
    # What was left out or is null goes back to what suits a job of this type.
    plain = JobSpec(job.exchange_id, job.type, job.symbol, job.timeframe)
    schedule = priority = next_run_ms = None
    if "schedule" in names:
        given = body.schedule
        schedule = schedule_of(given, job.timeframe) if given else plain.effective_schedule
        next_run_ms = schedule.next_run(await parts.now_ms(), random.random())
    if "priority" in names:
        priority = plain.effective_priority if body.priority is None else body.priority
    return JobView.of(
        await parts.queue.change(
            job.id,
            schedule=schedule,
            next_run_ms=next_run_ms,
            priority=priority,
            params=body.params if "params" in names else None,
        )
    )
