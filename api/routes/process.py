"""`/healthz`, `/readyz`, `/metrics` and `/openapi.json`: the process itself."""

import asyncio
from typing import Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from api import problems
from api.deps import Parts, Services
from api.figures import exposition
from api.openapi import problems as may_answer
from api.roles import ANYONE, VIEWER
from api.schemas.fields import View
from api.schemas.problem import FieldError
from collector.errors import CollectorError, DatabaseUnavailable
from collector.mongo.schema import require_current

router = APIRouter(tags=["process"])


class Health(View):
    status: str
    """Always ok"""


class Readiness(View):
    status: str
    """ready"""
    parts: dict[str, str]
    """The result of each part"""


@router.get("/healthz", summary="Whether the process is alive", dependencies=[ANYONE])
async def healthz() -> Health:
    """Checks nothing else: a restart helps only when this does not answer."""
    return Health(status="ok")


@router.get(
    "/readyz",
    summary="Whether requests can be served",
    dependencies=[ANYONE],
    response_model=Readiness,
    responses=may_answer(503),
)
async def readyz(parts: Parts) -> Response:
    """503 names the parts that fail: `mongodb`, `schema` or `store`."""
    found = await _look(parts)
    failing = {name: error for name, error in found.items() if error is not None}
    codes = {name: "ok" if error is None else error.code for name, error in found.items()}
    if not failing:
        return JSONResponse(Readiness(status="ready", parts=codes).model_dump())
    return problems.problem_response(
        503,
        "not_ready",
        f"not ready: {', '.join(failing)}",
        errors=[
            FieldError(field=name, reason=_reason_for(error), code=error.code)
            for name, error in failing.items()
        ],
        headers={"Retry-After": str(problems.RETRY_AFTER_SECONDS)},
        parts=codes,
    )


_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    dependencies=[VIEWER],
    response_class=PlainTextResponse,
    responses=_METRICS,
)
async def metrics(parts: Parts) -> Response:
    """This process's counters, and the gauges that are facts of the database."""
    return Response(await exposition(parts), media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False, dependencies=[VIEWER])
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


async def _look(parts: Services) -> dict[str, CollectorError | None]:
    mongodb = await _failure(parts.database.read_server_clock())
    schema: CollectorError | None = mongodb
    if mongodb is None:
        schema = await _failure(require_current(parts.database))
    store = await _failure(asyncio.to_thread(parts.store.storage.folders, ""))
    return {"mongodb": mongodb, "schema": schema, "store": store}


async def _failure(attempt: Any) -> CollectorError | None:
    try:
        await attempt
    except CollectorError as error:
        return error
    return None


def _reason_for(error: CollectorError) -> str:
    # Probes come without a key: the answer must not reveal addresses or paths.
    if isinstance(error, DatabaseUnavailable):
        return "MongoDB cannot be reached"
    return {"schema_mismatch": str(error)}.get(error.code, "it fails; see the server's log")
