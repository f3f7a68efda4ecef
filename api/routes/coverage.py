"""`/api/v1/coverage`: how much of each stored series is there."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.deps import Parts
from api.report_route import reported
from api.roles import VIEWER
from api.schemas.reports import CoveragePage, SeriesAsked

router = APIRouter(prefix="/api/v1/coverage", tags=["reports"])


@router.get("", summary="Count what is stored", dependencies=[VIEWER])
async def list_coverage(
    asked: Annotated[SeriesAsked, Query()], parts: Parts, request: Request, response: Response
) -> CoveragePage:
    """Per series: slots expected, bars present, slots without a trade, slots missing.

    The files are read while you wait, and the answer is kept for some seconds (`generated_at`,
    `Age`); `Cache-Control: no-cache` asks for a new one. A timeframe that is not stored is made of
    shorter bars.
    """
    document = await reported("coverage", asked.filter(), parts, request, response)
    return CoveragePage.model_validate(document)
