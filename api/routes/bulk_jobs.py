"""`/api/v1/jobs/pause|resume|run|remove`: one change to many jobs."""

from fastapi import APIRouter

from api.deps import Parts, Services
from api.roles import ADMIN, OPERATOR
from api.schemas.bulk import BulkChange, BulkView
from collector.operations.bulk_jobs import change_many
from collector.operations.job_filters import meant_filters

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])


@router.post("/pause", summary="Pause many jobs", dependencies=[OPERATOR])
async def pause_jobs(body: BulkChange, parts: Parts) -> BulkView:
    """Running ones stop after their current page, their cursors kept."""
    return await _changed(parts, "pause", body)


@router.post("/resume", summary="Resume many jobs", dependencies=[OPERATOR])
async def resume_jobs(body: BulkChange, parts: Parts) -> BulkView:
    """They start now, from where they were; failed ones too."""
    return await _changed(parts, "resume", body)


@router.post("/run", summary="Run many jobs now", dependencies=[OPERATOR])
async def run_jobs(body: BulkChange, parts: Parts) -> BulkView:
    """Whatever their schedules; failed ones too. Paused ones must be resumed."""
    return await _changed(parts, "run", body)


@router.post("/remove", summary="Delete many jobs", dependencies=[ADMIN])
async def remove_jobs(body: BulkChange, parts: Parts) -> BulkView:
    """What they collected stays."""
    return await _changed(parts, "remove", body)


async def _changed(parts: Services, verb: str, body: BulkChange) -> BulkView:
    asked = body.filter
    chosen = await meant_filters(parts.database, asked.values())
    answer = await change_many(
        parts.database, verb, chosen, every=bool(asked.all), dry_run=body.dry_run
    )
    return BulkView(matched=answer.matched, changed=answer.changed, refused=list(answer.refused))
