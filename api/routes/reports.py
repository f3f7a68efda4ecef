"""`/api/v1/reports`: what stored series lack, and whether they can be trusted."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.missing_ranges import RangesAsked, RangesPage, RangeView
from api.schemas.reports import (
    MissingPage,
    MissingSummary,
    MissingView,
    SeriesAsked,
    ValidationPage,
    ValidationSummary,
    ValidationView,
)
from api.schemas.source_checks import SourceAsked, SourcePage, SourceView
from api.series_pages import all_ledgers, in_reader, series_page
from collector.operations.connectors import check_exchange
from collector.operations.missing_ranges import longest_ranges, with_owners
from collector.reports.coverage import coverage
from collector.reports.expectations import expectations
from collector.reports.gap_rule import within_limit
from collector.reports.missing import MissingReport
from collector.reports.source_reports import SourceReports
from collector.reports.validation import inspect
from collector.reports.validation_report import ValidationReport

router = APIRouter(prefix="/api/v1/reports", tags=["reports"])


@router.get("/missing", summary="Report what series lack", dependencies=[VIEWER])
async def missing_report(asked: Annotated[SeriesAsked, Query()], parts: Parts) -> MissingPage:
    """The rows of missing.csv, the worst stretches, and what to do about them."""
    page, next_cursor = await series_page(parts, asked)
    limit = parts.demands.max_gap_pct
    expected = await expectations(parts.database, page, await parts.now_ms())
    counted = []
    for series in page:
        counted.append(await in_reader(coverage, parts.store, series, expected[series]))
        within_limit(counted[-1], limit)
    report = MissingReport(counted, limit)
    return MissingPage(
        items=[MissingView.model_validate(row) for row in report.rows()],
        next_cursor=next_cursor,
        summary=MissingSummary.model_validate(report.summary()),
    )


@router.get("/gaps", summary="List the longest missing ranges", dependencies=[VIEWER])
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
async def validation_report(asked: Annotated[SeriesAsked, Query()], parts: Parts) -> ValidationPage:
    """Every check of `datalayer validate` that needs no exchange."""
    page, next_cursor = await series_page(parts, asked)
    now_ms = await parts.now_ms()
    demands = replace(parts.demands, samples=0)
    expected = await expectations(parts.database, page, now_ms)
    reports = [
        await in_reader(inspect, parts.store, series, demands, expected[series], now_ms=now_ms)
        for series in page
    ]
    document = ValidationReport(now_ms, reports, demands).document()
    return ValidationPage(
        generated_at=document["generated_at"],
        build_signature=document["build_signature"],
        items=[ValidationView.model_validate(each) for each in document["series"]],
        next_cursor=next_cursor,
        summary=ValidationSummary.model_validate(document["summary"]),
    )
