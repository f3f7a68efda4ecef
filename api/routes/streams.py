"""`/api/v1/streams`: series to keep, as the jobs that keep them."""

from typing import Any

from fastapi import APIRouter, Response

from api.deps import Parts, Services
from api.openapi import job_links, problems
from api.roles import OPERATOR
from api.schemas.connector_view import ConnectorView
from api.schemas.jobs import JobView
from api.schemas.streams import CostView, NewStreams, StreamsView
from collector.errors import NotFound
from collector.operations.connectors import Ensured
from collector.operations.market_names import MarketNames
from collector.operations.series_cost import series_cost
from collector.operations.streams import Kept, add_series, keep_series

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
    ensured, kept = await _kept(body, parts)
    created = [JobView.of(job) for job, made in kept.jobs if made]
    existing = [JobView.of(job) for job, made in kept.jobs if not made]
    response.status_code = 201 if created else 200
    return StreamsView(
        created=created,
        existing=existing,
        notes=kept.notes,
        connector=ConnectorView.of(ensured.connector, await parts.now_ms()),
        connector_created=ensured.made,
        symbols_known=kept.is_known,
    )


@router.post("/estimate", summary="Estimate what series would take", dependencies=[OPERATOR])
async def estimate_streams(body: NewStreams, parts: Parts) -> CostView:
    """Requests, and time at the budget of the exchange. Nothing is made, and no exchange is asked.

    An exchange without a connector is estimated by the limits that a new one would have.
    """
    return CostView.of(await series_cost(parts.database, body.request()))


async def _kept(body: NewStreams, parts: Services) -> tuple[Ensured, Kept]:
    if body.make_connector:
        names = await _names(body, parts)
        return await add_series(parts.database, body.request(), names)
    kept = await keep_series(parts.database, body.request(), parts.desk)
    connector = await parts.registry.get(body.exchange_id)
    return Ensured(connector, False, ()), kept


async def _names(body: NewStreams, parts: Services) -> MarketNames:
    """Markets can be asked for with a connector only; without one what is known has to do."""
    try:
        await parts.registry.get(body.exchange_id)
    except NotFound:
        return MarketNames(parts.database)
    return parts.desk
