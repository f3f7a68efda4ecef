"""The OpenAPI document: FastAPI's own, with every problem as it is really answered."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

from api.problems import MEDIA_TYPE, TITLES
from api.schemas.problem import Problem
from collector import __version__
from collector.keys import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import FastAPI

    from api.roles import Guarded

DESCRIPTION = """\
Connectors, jobs, markets and candles of a Collector.

Lists are `{"items": [...], "next_cursor": ...}`: ask again with `cursor` until it is null. Windows,
schedules and cursors are epoch milliseconds, dates are ISO 8601; queries and bodies accept either.
Everything that is not a success is an RFC 9457 problem with a stable `code`.
"""
TAGS = [
    {"name": "connectors", "description": "One per exchange: its limits, and whether it may work"},
    {"name": "jobs", "description": "What is to be collected, and how far it is"},
    {"name": "markets", "description": "What an exchange lists"},
    {"name": "candles", "description": "The bars themselves"},
    {"name": "events", "description": "Changes as they happen"},
    {"name": "process", "description": "For probes and Prometheus"},
]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer with these problems of its own."""
    return {status: {"description": TITLES[status]} for status in statuses}


def job_links(operations: Iterable[str]) -> dict[str, Any]:
    """Where one may go from an answer that holds a job."""
    return _links(operations, "job_id", "$response.body#/id")


def connector_links(operations: Iterable[str]) -> dict[str, Any]:
    """Where one may go from an answer that holds a connector."""
    return _links(operations, "exchange_id", "$response.body#/exchange_id")


def _links(operations: Iterable[str], parameter: str, value: str) -> dict[str, Any]:
    return {
        operation: {"operationId": operation, "parameters": {parameter: value}}
        for operation in operations
    }


def document(app: FastAPI, routes: Iterable[Guarded], *, with_keys: bool) -> dict[str, Any]:
    """The whole document. Security is described only where there are keys to ask for."""
    schema = get_openapi(
        title="Collector",
        version=__version__,
        description=DESCRIPTION,
        routes=app.routes,
        tags=TAGS,
    )
    components = schema["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        components.pop(name, None)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    components.update(problem.pop("$defs"))
    components["Problem"] = problem
    if with_keys:
        bearer = {"type": "http", "scheme": "bearer", "description": "An API key"}
        schema["components"]["securitySchemes"] = {"key": bearer}
    roles = {(guarded.path, guarded.method): guarded.role for guarded in routes}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            role = roles[path, method.upper()]
            _describe(operation, role, with_keys=with_keys)
    return schema


def _describe(operation: dict[str, Any], role: Role, *, with_keys: bool) -> None:
    common = {400, 403}
    if with_keys and role > Role.ANYONE:
        common |= {401, 429}
        operation["security"] = [{"key": []}]
    if "requestBody" in operation:
        common |= {413}
    if role > Role.ANYONE:
        common |= {500, 503}
        operation["x-role"] = role.word
    responses = operation["responses"]
    for status in common:
        responses.setdefault(str(status), {})
    for status, response in responses.items():
        if int(status) >= 400:
            response["description"] = TITLES.get(int(status), HTTPStatus(int(status)).phrase)
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
            if int(status) in (429, 503):
                response["headers"] = {
                    "Retry-After": {
                        "description": "Seconds to wait",
                        "schema": {"type": "integer", "minimum": 1},
                    }
                }
    operation["responses"] = dict(sorted(responses.items()))
