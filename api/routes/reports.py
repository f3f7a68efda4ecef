"""`/api/v1/reports`: what stored series lack, and whether they can be trusted."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.reports import (
    MissingPage,
    MissingSummary,
    MissingView,
    SeriesAsked,
    ValidationPage,
    ValidationSummary,
    ValidationView,
)
from api.series_pages import in_reader, series_page
from collector.reports.coverage import coverage
from collector.reports.expectations import expectations
from collector.reports.gap_rule import within_limit
from collector.reports.missing import MissingReport
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
