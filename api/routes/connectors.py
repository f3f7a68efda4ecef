"""`/api/v1/connectors`: one per exchange."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response

from api.deps import Parts
from api.openapi import connector_links, problems, tagged
from api.preconditions import IfMatch, IfNoneMatch
from api.roles import ADMIN, OPERATOR, VIEWER
from api.schemas.connector_view import ConnectorPage, ConnectorView, RemovedConnector
from api.schemas.connectors import ConnectorChange, ConnectorFilters, NewConnector, Pause
from collector.operations import connected_jobs, connectors
from collector.operations.connector_change import change_connector as change_limits

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
    responses={**_MADE, **problems(404, 409)},
)
async def make_connector(body: NewConnector, parts: Parts, response: Response) -> ConnectorView:
    """Idempotent: 201 when it was made, 200 with the existing one, unchanged, otherwise.

    A new connector also gets the jobs that every exchange has: `markets_refresh`, `compact`,
    `tail_refresh`, `gap_scan` and `full_scan`.
    """
    ensured = await connectors.ensure(
        parts.database, body.exchange_id, body.overrides(), body.notes
    )
    response.status_code = 201 if ensured.made else 200
    response.headers["Location"] = f"/api/v1/connectors/{ensured.connector.exchange_id}"
    return ConnectorView.of(ensured.connector, await parts.now_ms())


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
    response_model=ConnectorView,
    responses={**tagged(304), **problems(404)},
)
async def show_connector(
    exchange_id: ExchangeIdPath, parts: Parts, known: IfNoneMatch, response: Response
) -> ConnectorView | Response:
    connector = await parts.registry.get(exchange_id)
    return known.answer(connector, ConnectorView.of(connector, await parts.now_ms()), response)


@router.patch(
    "/{exchange_id}",
    summary="Change a connector's limits or notes",
    dependencies=[ADMIN],
    responses={**tagged(), **problems(404, 412)},
)
async def change_connector(
    exchange_id: ExchangeIdPath,
    body: ConnectorChange,
    parts: Parts,
    seen: IfMatch,
    response: Response,
) -> ConnectorView:
    """What is left out stays. Acts on the very next token of every worker."""
    only_if = seen.only_if(await parts.registry.get(exchange_id))
    connector = await change_limits(parts.database, exchange_id, body.changes(), only_if=only_if)
    return seen.answer(connector, ConnectorView.of(connector, await parts.now_ms()), response)


@router.delete(
    "/{exchange_id}",
    summary="Delete a connector",
    dependencies=[ADMIN],
    responses=problems(404, 409, 412),
)
async def delete_connector(
    exchange_id: ExchangeIdPath,
    parts: Parts,
    seen: IfMatch,
    cascade: Annotated[bool, Query(description="Delete its jobs as well")] = False,
) -> RemovedConnector:
    """A soft delete, refused while active jobs exist. Its budget and bans are remembered."""
    only_if = seen.only_if(await parts.registry.get(exchange_id))
    connector, gone = await connected_jobs.remove_connector(
        parts.database, exchange_id, cascade=cascade, only_if=only_if
    )
    return RemovedConnector.with_jobs(connector, await parts.now_ms(), gone)


@router.post(
    "/{exchange_id}/pause",
    summary="Pause a connector",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 412)},
)
async def pause_connector(
    exchange_id: ExchangeIdPath,
    parts: Parts,
    seen: IfMatch,
    response: Response,
    body: Annotated[Pause | None, Body()] = None,
) -> ConnectorView:
    """Stops every worker at its next token; with `until` the pause ends by itself."""
    only_if = seen.only_if(await parts.registry.get(exchange_id))
    until = body.until if body else None
    connector = await connectors.pause(parts.database, exchange_id, until, only_if=only_if)
    return seen.answer(connector, ConnectorView.of(connector, await parts.now_ms()), response)


@router.post(
    "/{exchange_id}/resume",
    summary="Resume a connector",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 412)},
)
async def resume_connector(
    exchange_id: ExchangeIdPath, parts: Parts, seen: IfMatch, response: Response
) -> ConnectorView:
    """Lifts a pause. A ban stays: it is the exchange's word."""
    only_if = seen.only_if(await parts.registry.get(exchange_id))
    connector = await parts.registry.resume(exchange_id, only_if=only_if)
    return seen.answer(connector, ConnectorView.of(connector, await parts.now_ms()), response)


@router.post(
    "/{exchange_id}/unblock",
    summary="Lift a block",
    dependencies=[OPERATOR],
    responses={**tagged(), **problems(404, 412)},
)
async def unblock_connector(
    exchange_id: ExchangeIdPath, parts: Parts, seen: IfMatch, response: Response
) -> ConnectorView:
    """Removes a block by the exchange. Fine when it is not blocked; a pause stays."""
    only_if = seen.only_if(await parts.registry.get(exchange_id))
    connector = await parts.registry.unblock(exchange_id, only_if=only_if)
    return seen.answer(connector, ConnectorView.of(connector, await parts.now_ms()), response)
