"""`/api/v1/connectors`: one per exchange."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response

from api.deps import Parts
from api.openapi import connector_links, problems
from api.problems import Refusal, unprocessable
from api.roles import ADMIN, OPERATOR, VIEWER
from api.schemas.connectors import (
    ConnectorChange,
    ConnectorFilters,
    ConnectorPage,
    ConnectorView,
    NewConnector,
    Pause,
)
from collector.connectors.venue_limits import venue_limits
from collector.jobs.job import EXCHANGE_DUTIES, JobSpec

router = APIRouter(prefix="/api/v1/connectors", tags=["connectors"])

ExchangeIdPath = Annotated[str, Path(description="ccxt's id", examples=["simulated"])]
_MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": ConnectorView, "links": connector_links()},
    201: {"links": connector_links()},
}


@router.post(
    "",
    summary="Make a connector, or get the one there is",
    dependencies=[OPERATOR],
    response_model=ConnectorView,
    status_code=201,
    responses={**_MADE, **problems(404)},
)
async def make_connector(body: NewConnector, parts: Parts, response: Response) -> ConnectorView:
    """Idempotent: 201 when it was made, 200 with the existing one, unchanged, otherwise.

    A new connector also gets the jobs that every exchange has: `markets_refresh`, `compact`,
    `tail_refresh`, `gap_scan` and `full_scan`.
    """
    parts.desk.check_exchange(body.exchange_id)
    # The figures of an exchange without quirks come from ccxt, whose import takes a second.
    limits = await asyncio.to_thread(venue_limits, body.exchange_id, body.overrides())
    connector, made = await parts.registry.ensure(body.exchange_id, limits, notes=body.notes)
    for duty in EXCHANGE_DUTIES:
        await parts.queue.add(JobSpec(body.exchange_id, duty))
    response.status_code = 201 if made else 200
    return ConnectorView.of(connector, await parts.now_ms())


@router.get("", summary="List connectors", dependencies=[VIEWER])
async def list_connectors(
    asked: Annotated[ConnectorFilters, Query()], parts: Parts
) -> ConnectorPage:
    """By `exchange_id`. Deleted ones are not listed."""
    now_ms = await parts.now_ms()
    views = [ConnectorView.of(each, now_ms) for each in await parts.registry.all()]
    chosen = [
        view
        for view in views
        if (asked.status is None or view.status == asked.status)
        and (asked.cursor is None or view.exchange_id > asked.cursor)
    ]
    page = chosen[: asked.limit]
    more = len(chosen) > len(page)
    return ConnectorPage(items=page, next_cursor=page[-1].exchange_id if more else None)


@router.get(
    "/{exchange_id}",
    summary="Show a connector",
    dependencies=[VIEWER],
    responses=problems(404),
)
async def show_connector(exchange_id: ExchangeIdPath, parts: Parts) -> ConnectorView:
    return ConnectorView.of(await parts.registry.get(exchange_id), await parts.now_ms())


@router.patch(
    "/{exchange_id}",
    summary="Change a connector's limits or notes",
    dependencies=[ADMIN],
    responses=problems(404),
)
async def change_connector(
    exchange_id: ExchangeIdPath, body: ConnectorChange, parts: Parts
) -> ConnectorView:
    """What is left out stays. Acts on the very next token of every worker."""
    connector = await parts.registry.change_limits(exchange_id, body.changes())
    return ConnectorView.of(connector, await parts.now_ms())


@router.delete(
    "/{exchange_id}",
    summary="Delete a connector",
    dependencies=[ADMIN],
    responses=problems(404, 409),
)
async def delete_connector(
    exchange_id: ExchangeIdPath,
    parts: Parts,
    cascade: Annotated[bool, Query(description="Delete its jobs as well")] = False,
) -> ConnectorView:
    """A soft delete, refused while active jobs exist. Its budget and bans are remembered."""
    await parts.registry.get(exchange_id)
    if cascade:
        # Jobs first: dying in between leaves a connector, and the request can be repeated.
        await parts.queue.delete_of_exchange(exchange_id)
    else:
        active = await parts.queue.active_of_exchange(exchange_id, besides=EXCHANGE_DUTIES)
        if active:
            raise Refusal(
                409,
                "active_jobs",
                f"{exchange_id} has {active} active jobs: pause or delete them, or ?cascade=true",
            )
        await parts.queue.delete_of_exchange(exchange_id, only_types=EXCHANGE_DUTIES)
    return ConnectorView.of(await parts.registry.remove(exchange_id), await parts.now_ms())


@router.post(
    "/{exchange_id}/pause",
    summary="Pause a connector",
    dependencies=[OPERATOR],
    responses=problems(404),
)
async def pause_connector(
    exchange_id: ExchangeIdPath, parts: Parts, body: Annotated[Pause | None, Body()] = None
) -> ConnectorView:
    """Stops every worker at its next token; with `until` the pause ends by itself."""
    until, now_ms = body.until if body else None, await parts.now_ms()
    if until is not None and until <= now_ms:
        raise unprocessable("until", "in_the_past", "until is in the past")
    return ConnectorView.of(await parts.registry.pause(exchange_id, until_ms=until), now_ms)


@router.post(
    "/{exchange_id}/resume",
    summary="Resume a connector",
    dependencies=[OPERATOR],
    responses=problems(404),
)
async def resume_connector(exchange_id: ExchangeIdPath, parts: Parts) -> ConnectorView:
    """Lifts a pause. A ban stays: it is the exchange's word."""
    return ConnectorView.of(await parts.registry.resume(exchange_id), await parts.now_ms())
