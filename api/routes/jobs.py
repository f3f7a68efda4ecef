"""`/api/v1/jobs`: what is to be collected."""

import random
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from bson import ObjectId
from fastapi import APIRouter, Path, Query, Response

from api.deps import Parts, Services
from api.openapi import job_links, problems, tagged
from api.preconditions import IfMatch, IfNoneMatch
from api.roles import ADMIN, OPERATOR, VIEWER
from api.schemas.jobs import (
    JobChange,
    JobFilters,
    JobPage,
    JobReplacement,
    JobView,
    MadeJob,
    NewJob,
)
from api.schemas.schedules import schedule_of
from collector.errors import InvalidInput
from collector.jobs.job import Job
from collector.jobs.queue import LIVE
from collector.operations import job_changes
from collector.operations.job_changes import JobEdit, live_job
from collector.operations.job_filters import meant_filters
from collector.operations.new_job import add_job

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

JobIdPath = Annotated[
    str, Path(description="The job's `id`", examples=["65f0c0ffee0000000000beef"])
]
_MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": MadeJob, "links": job_links()},
    201: {"links": job_links()},
}


@router.post(
    "",
    summary="Make a job, or get the same one there is",
    dependencies=[OPERATOR],
    response_model=MadeJob,
    status_code=201,
    responses={**_MADE, **problems(409)},
)
async def make_job(body: NewJob, parts: Parts, response: Response) -> MadeJob:
    """201 when it was created, 200 with the existing one when there is one that is not deleted.

    The existing one is unchanged, except that an earlier `since` of an `ohlcv_backfill` fetches
    what lies before; `requested_since` shows where its history begins now.

    `ohlcv_backfill` ends at its creation unless `until` is given; `ohlcv_incremental` begins there;
    `gap_backfill` needs both ends.
    """
    added = await add_job(parts.database, body.request(), parts.desk)
    response.status_code = 201 if added.made else 200
    response.headers["Location"] = f"/api/v1/jobs/{added.job.id}"
    return MadeJob.with_notes(added.job, [] if added.note is None else [added.note])


@router.get("", summary="List jobs", dependencies=[VIEWER])
async def list_jobs(asked: Annotated[JobFilters, Query()], parts: Parts) -> JobPage:
    """In the order they were made."""
    chosen = asked.values()
    if asked.id_prefix is not None:
        named = await parts.queue.with_prefix(asked.id_prefix, asked.limit, asked.status or LIVE)
        return JobPage(items=[JobView.of(job) for job in named], next_cursor=None)
    jobs = await parts.queue.find(
        await meant_filters(parts.database, chosen),
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


@router.get(
    "/{job_id}",
    summary="Show a job",
    dependencies=[VIEWER],
    response_model=JobView,
    responses={**tagged(304), **problems(404)},
)
async def show_job(
    job_id: JobIdPath, parts: Parts, known: IfNoneMatch, response: Response
) -> JobView | Response:
    job = await live_job(parts.database, job_id)
    return known.answer(job, JobView.of(job), response)


@router.put(
    "/{job_id}",
    summary="Replace a job's settings",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 412)},
)
async def replace_job(
    job_id: JobIdPath, body: JobReplacement, parts: Parts, seen: IfMatch, response: Response
) -> JobView:
    """Schedule, priority and params as sent; what is left out goes back to the type's own."""
    job = await live_job(parts.database, job_id)
    for name in ("exchange_id", "type", "symbol", "timeframe"):
        sent = getattr(body, name)
        if sent is not None and sent != getattr(job, name):
            raise InvalidInput(name, "cannot_change", f"`{name}` of a job cannot change")
    changed = await _changed(parts, job, body, {"schedule", "priority", "params"}, seen)
    return seen.answer(changed, JobView.of(changed), response)


@router.patch(
    "/{job_id}",
    summary="Change a job's settings",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 412)},
)
async def change_job(
    job_id: JobIdPath, body: JobChange, parts: Parts, seen: IfMatch, response: Response
) -> JobView:
    """What is left out stays. A run under way ends by the new schedule."""
    job = await live_job(parts.database, job_id)
    changed = await _changed(parts, job, body, body.model_fields_set, seen)
    return seen.answer(changed, JobView.of(changed), response)


@router.delete(
    "/{job_id}",
    summary="Delete a job",
    dependencies=[ADMIN],
    responses={**tagged(), **problems(404, 409, 412)},
)
async def delete_job(job_id: JobIdPath, parts: Parts, seen: IfMatch, response: Response) -> JobView:
    """A soft delete: a running one stops after its current page, and its key is free again."""
    return await _moved(job_changes.delete, job_id, parts, seen, response)


@router.post(
    "/{job_id}/pause",
    summary="Pause a job",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 409, 412)},
)
async def pause_job(job_id: JobIdPath, parts: Parts, seen: IfMatch, response: Response) -> JobView:
    """A running one stops after its current page, its cursor kept. Pausing twice is fine."""
    return await _moved(job_changes.pause, job_id, parts, seen, response)


@router.post(
    "/{job_id}/resume",
    summary="Resume a job",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 409, 412)},
)
async def resume_job(job_id: JobIdPath, parts: Parts, seen: IfMatch, response: Response) -> JobView:
    """It starts now, from where it was. Resuming an active job is fine."""
    return await _moved(job_changes.resume, job_id, parts, seen, response)


@router.post(
    "/{job_id}/run",
    summary="Run a job now",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 409, 412)},
)
async def run_job(job_id: JobIdPath, parts: Parts, seen: IfMatch, response: Response) -> JobView:
    """Whatever its schedule. A running one continues; a paused one must be resumed."""
    return await _moved(job_changes.run, job_id, parts, seen, response)


async def _moved(
    change: Callable[..., Awaitable[Job]],
    job_id: str,
    parts: Services,
    seen: IfMatch,
    response: Response,
) -> JobView:
    only_if = seen.only_if(await live_job(parts.database, job_id))
    job = await change(parts.database, job_id, only_if=only_if)
    return seen.answer(job, JobView.of(job), response)


async def _changed(
    parts: Services, job: Job, body: JobChange, names: set[str], seen: IfMatch
) -> Job:
    """What was named; what is null goes back to what suits a job of this type."""
    given = body.schedule if "schedule" in names else None
    wanted = JobEdit(
        schedule=(
            schedule_of(given, job.exchange_id, job.symbol, job.timeframe) if given else None
        ),
        priority=body.priority if "priority" in names else None,
        params=body.params if "params" in names else None,
        usual=frozenset(each for each in names if getattr(body, each) is None),
    )
    only_if = seen.only_if(job)
    spread = random.random()
    return await job_changes.change(parts.database, job, wanted, spread, only_if=only_if)
