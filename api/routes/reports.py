"""`/api/v1/reports`: what stored series lack, and whether they can be trusted."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.deps import Parts
from api.reader_threads import in_reader
from api.report_route import reported
from api.roles import VIEWER
from api.schemas.missing_ranges import RangesAsked, RangesPage, RangeView
from api.schemas.reports import MissingPage, SeriesAsked, ValidationPage
from api.schemas.source_checks import SourceAsked, SourcePage, SourceView
from api.series_pages import all_ledgers
from collector.operations.connectors import check_exchange
from collector.operations.missing_ranges import longest_ranges, with_owners
from collector.reports.expectations import expectations
from collector.reports.source_reports import SourceReports

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


@router.get(
    "/gaps", summary="List the longest missing and unconfirmed ranges", dependencies=[VIEWER]
)
async def gaps_report(asked: Annotated[RangesAsked, Query()], parts: Parts) -> RangesPage:
    """Of all collected series, each with the job that has to fetch it.

    By the ledgers in the files' footers: no bar is read.
    """
    found = await all_ledgers(parts, asked)
    series = [each.series for each in found]
    expected = await expectations(parts.database, series, await parts.now_ms())
    missing = await in_reader(longest_ranges, found, expected, asked.limit)
    owned = await with_owners(parts.database, missing.longest)
    return RangesPage(
        items=[RangeView.of(each) for each in owned],
        ranges=missing.ranges,
        bars=missing.bars,
        unconfirmed=missing.unconfirmed,
        series=len(found),
    )


@router.get("/source", summary="List the last source checks", dependencies=[VIEWER])
async def source_report(asked: Annotated[SourceAsked, Query()], parts: Parts) -> SourcePage:
    """What `verify_source` jobs found last of each series, the newest check first."""
    if asked.exchange_id is not None:
        check_exchange(asked.exchange_id)
    found = await SourceReports(parts.database).newest(asked.exchange_id, limit=asked.limit)
    return SourcePage(items=[SourceView.of(each) for each in found])


@router.get("/validation", summary="Check series", dependencies=[VIEWER])
async def validation_report(
    asked: Annotated[SeriesAsked, Query()], parts: Parts, request: Request, response: Response
) -> ValidationPage:
    """Every check of `datalayer validate` that needs no exchange. Kept for some seconds, too."""
    document = await reported("validation", asked.filter(), parts, request, response)
    return ValidationPage.model_validate(document)
