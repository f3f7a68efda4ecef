"""`/api/v1/jobs/{job_id}/runs`: a job's history."""

from typing import Annotated

from bson import ObjectId
from fastapi import APIRouter, Query

from api.deps import Parts
from api.openapi import problems
from api.roles import VIEWER
from api.routes.jobs import JobIdPath
from api.schemas.runs import RunPage, RunsAsked, RunView
from collector.operations.job_changes import live_job

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])


@router.get(
    "/{job_id}/runs", summary="List a job's runs", dependencies=[VIEWER], responses=problems(404)
)
async def list_runs(
    job_id: JobIdPath, asked: Annotated[RunsAsked, Query()], parts: Parts
) -> RunPage:
    """Newest first. Uneventful runs are kept for a day, failed ones for a month."""
    job = await live_job(parts.database, job_id)
    before = ObjectId(asked.cursor) if asked.cursor else None
    runs = await parts.runs.of(job.id, before=before, limit=asked.limit + 1)
    page = [RunView.of(run) for run in runs[: asked.limit]]
    return RunPage(items=page, next_cursor=page[-1].id if len(runs) > len(page) else None)
