"""`/api/v1/reports`: what stored series lack, and whether they can be trusted."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.deps import Parts
from api.report_route import reported
from api.roles import VIEWER
from api.schemas.reports import MissingPage, SeriesAsked, ValidationPage

router = APIRouter(prefix="/api/v1/reports", tags=["reports"])


@router.get("/missing", summary="Report what series lack", dependencies=[VIEWER])
async def missing_report(
    asked: Annotated[SeriesAsked, Query()], parts: Parts, request: Request, response: Response
) -> MissingPage:
    """The rows of missing.csv, the worst stretches, and what to do about them.

    Kept for some seconds, like coverage.
    """
    document = await reported("missing", asked.filter(), parts, request, response)
    return MissingPage.model_validate(document)


@router.get("/validation", summary="Check series", dependencies=[VIEWER])
async def validation_report(
    asked: Annotated[SeriesAsked, Query()], parts: Parts, request: Request, response: Response
) -> ValidationPage:
    """Every check of `datalayer validate` that needs no exchange. Kept for some seconds, too."""
    document = await reported("validation", asked.filter(), parts, request, response)
    return ValidationPage.model_validate(document)
