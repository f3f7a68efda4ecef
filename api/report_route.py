"""What the routes of reports share: the report itself, its age, and whether its reader has left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from api.reader_threads import in_reader
from collector.operations.series_reports import SeriesReports, check_names
from collector.reports.expectations import expectations

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from api.deps import Services
    from api.report_answers import Stop
    from collector.operations.series_reports import SeriesFilter

ReportName = Literal["coverage", "missing", "validation"]


async def reported(
    name: ReportName, asked: SeriesFilter, parts: Services, request: Request, response: Response
) -> dict[str, Any]:
    """The report, with its age in the headers of the response."""
    check_names(asked.exchange_id, asked.timeframe)

    async def make(stop: Stop) -> dict[str, Any]:
        reports = SeriesReports(
            parts.store,
            partial(expectations, parts.database),
            parts.demands,
            await parts.now_ms(),
            in_reader,
            stop.check,
        )
        made: dict[str, Any] = await getattr(reports, name)(asked)
        return made

    anew = "no-cache" in request.headers.get("cache-control", "")
    answered = await parts.reports.get((name, asked), make, partial(_left, request), anew=anew)
    response.headers["Age"] = str(answered.age_seconds)
    response.headers["Cache-Control"] = f"private, max-age={answered.fresh_seconds}"
    return answered.document


async def _left(request: Request) -> None:
    """Ends when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
