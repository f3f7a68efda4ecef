"""`/api/v1/census`: jobs by state and the lag of every exchange."""

from fastapi import APIRouter

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.census import CensusPage
from collector.operations.exchange_figures import exchange_figures

router = APIRouter(prefix="/api/v1/census", tags=["jobs"])


@router.get("", summary="Count jobs by exchange and state", dependencies=[VIEWER])
async def read_census(parts: Parts) -> CensusPage:
    """Also how far new bars are behind. Jobs are as the workers last counted them, some seconds
    ago; without workers they are counted now.
    """
    return CensusPage.of(await exchange_figures(parts.database))
