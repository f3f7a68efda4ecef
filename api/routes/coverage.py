"""`/api/v1/coverage`: how much of each stored series is there."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.deps import Parts
from api.report_route import reported
from api.roles import VIEWER
from api.schemas.coverage_days import DaysAsked, DaysPage, DaysView
from api.schemas.reports import CoveragePage, SeriesAsked
from api.series_pages import ledger_page
from collector.reports.coverage_days import coverage_days
from collector.reports.expectations import expectations

router = APIRouter(prefix="/api/v1/coverage", tags=["reports"])


@router.get("", summary="Count what is stored", dependencies=[VIEWER])
async def list_coverage(
    asked: Annotated[SeriesAsked, Query()], parts: Parts, request: Request, response: Response
) -> CoveragePage:
    """Per series: slots expected, present, without a trade, missing and unconfirmed.

    The files are read while you wait, and the answer is kept for some seconds (`generated_at`,
    `Age`); `Cache-Control: no-cache` asks for a new one. A timeframe that is not stored is made of
    shorter bars.
    """
    document = await reported("coverage", asked.filter(), parts, request, response)
    return CoveragePage.model_validate(document)


@router.get("/days", summary="Count what each day lacks", dependencies=[VIEWER])
async def list_coverage_days(asked: Annotated[DaysAsked, Query()], parts: Parts) -> DaysPage:
    """Per collected series and day in UTC: bars expected, missing and unconfirmed.

    By the ledgers in the files' footers: no bar is read, so it is quick.
    """
    now_ms = await parts.now_ms()
    days = asked.days(now_ms)
    page, next_cursor = await ledger_page(parts, asked)
    expected = await expectations(parts.database, [each.series for each in page], now_ms)
    items = []
    for each in page:
        counted = coverage_days(each.series, each.covered, expected[each.series], days)
        items.append(DaysView.of(counted, damaged=each.is_damaged))
    return DaysPage(start=days.from_ms, end=days.to_ms, items=items, next_cursor=next_cursor)
