"""`/api/v1/status`: the state of everything."""

from fastapi import APIRouter

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.status import StatusView
from collector.operations.census import census
from collector.operations.trouble_facts import troubles_now

router = APIRouter(prefix="/api/v1/status", tags=["troubles"])


@router.get("", summary="Show the state of everything", dependencies=[VIEWER])
async def show_status(parts: Parts) -> StatusView:
    """What is wrong, exchanges with budgets and lag, jobs by state, backfills, workers.

    Jobs, lag and backfills are as a worker last counted them: `counted_at` says when, which is some
    seconds ago. While no worker is running, the API counts.
    """
    counts = await parts.counting.last()
    found = await census(parts.database, counts)
    return StatusView.of(found, await troubles_now(parts.database, counts))
