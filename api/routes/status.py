"""`/api/v1/status`: the state of everything, counted now."""

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

    Jobs are counted for every request: `/troubles` is cheaper for whoever asks often.
    """
    found = await census(parts.database)
    return StatusView.of(found, await troubles_now(parts.database, count_now=True))
