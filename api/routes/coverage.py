"""`/api/v1/coverage`: how much of each stored series is there."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.reports import CoveragePage, CoverageView, SeriesAsked
from api.series_pages import in_reader, series_page
from collector.reports.coverage import coverage
from collector.reports.expectations import expectations
from collector.reports.gap_rule import measured

router = APIRouter(prefix="/api/v1/coverage", tags=["reports"])


@router.get("", summary="Count what is stored", dependencies=[VIEWER])
async def list_coverage(asked: Annotated[SeriesAsked, Query()], parts: Parts) -> CoveragePage:
    """Per series: slots expected, bars present, slots without a trade, slots missing.

    The files are read while you wait. A timeframe that is not stored is made of shorter bars.
    """
    page, next_cursor = await series_page(parts, asked)
    expected = await expectations(parts.database, page, await parts.now_ms())
    items = []
    for series in page:
        counted = await in_reader(coverage, parts.store, series, expected[series])
        measured(counted)
        items.append(CoverageView.of(counted))
    return CoveragePage(items=items, next_cursor=next_cursor)
