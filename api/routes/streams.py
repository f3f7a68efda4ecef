"""`/api/v1/streams`: series to keep, as the jobs that keep them."""

from typing import Any

from fastapi import APIRouter, Response

from api.deps import Parts
from api.openapi import job_links, problems
from api.roles import OPERATOR
from api.schemas.jobs import JobView
from api.schemas.streams import CostView, NewStreams, StreamsView
from collector.operations.series_cost import series_cost
from collector.operations.streams import SeriesRequest, keep_series

router = APIRouter(prefix="/api/v1/streams", tags=["jobs"])

_MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": StreamsView, "links": job_links("/existing/0")},
    201: {"links": job_links("/created/0")},
}


@router.post(
    "",
    summary="Keep series: make the jobs that are missing",
    dependencies=[OPERATOR],
    status_code=201,
    responses={**_MADE, **problems(409)},
)
async def make_streams(body: NewStreams, parts: Parts, response: Response) -> StreamsView:
    """Each series gets a job for new bars and one for its history. All names are checked first.

    201 when at least one job was made, 200 when all were there. An earlier `since` fetches what
    lies before; a later one changes nothing, and `notes` says so.
    """
    kept = await keep_series(parts.database, _wanted(body), parts.desk)
    created = [JobView.of(job) for job, made in kept.jobs if made]
    existing = [JobView.of(job) for job, made in kept.jobs if not made]
    response.status_code = 201 if created else 200
    return StreamsView(created=created, existing=existing, notes=kept.notes)


@router.post("/estimate", summary="Estimate what series would take", dependencies=[OPERATOR])
async def estimate_streams(body: NewStreams, parts: Parts) -> CostView:
    """Requests, and time at the budget of the exchange. Nothing is made, and no exchange is asked.

    An exchange without a connector is estimated by the limits that a new one would have.
    """
    return CostView.of(await series_cost(parts.database, _wanted(body)))


def _wanted(body: NewStreams) -> SeriesRequest:
    return SeriesRequest(body.exchange_id, body.symbols, body.timeframes, body.since, body.backfill)
