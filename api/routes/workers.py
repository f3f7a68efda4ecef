"""`/api/v1/workers`: who is working, and where Prometheus finds them."""

from fastapi import APIRouter

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.workers import ScrapeTargets, WorkerPage, WorkerView

router = APIRouter(prefix="/api/v1/workers", tags=["workers"])


@router.get("", summary="List the workers that are alive", dependencies=[VIEWER])
async def list_workers(parts: Parts) -> WorkerPage:
    """By id. A worker that was killed stays in the list for up to 40 seconds."""
    return WorkerPage(items=[WorkerView.of(each) for each in await parts.workers.all()])


@router.get("/targets", summary="List the workers' metrics addresses", dependencies=[VIEWER])
async def list_targets(parts: Parts) -> list[ScrapeTargets]:
    """For `http_sd_configs` of Prometheus: every worker counts for itself and is scraped itself."""
    return [
        ScrapeTargets(targets=[each["metrics"]], labels={"worker": each["_id"]})
        for each in await parts.workers.all()
        if each.get("metrics")
    ]
