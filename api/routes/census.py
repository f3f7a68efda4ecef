"""`/api/v1/census`: jobs by state and the lag of every exchange."""

from fastapi import APIRouter

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.census import CensusPage

router = APIRouter(prefix="/api/v1/census", tags=["jobs"])


@router.get("", summary="Count jobs by exchange and state", dependencies=[VIEWER])
async def read_census(parts: Parts) -> CensusPage:
    """Also how far new bars are behind. All of it is as a worker last counted it: `counted_at` says
    when, which is some seconds ago. While no worker is running, the API counts.
    """
    return CensusPage.of(await parts.counting.last(), await parts.now_ms())
