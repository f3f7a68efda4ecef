"""The OpenAPI document: FastAPI's own, with every problem as it is really answered."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

from api.preconditions import ETAG
from api.problems import MEDIA_TYPE, TITLES
from api.schemas.problem import Problem
from collector.keys import Role
from collector.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import FastAPI

    from api.roles import Guarded

DESCRIPTION = """\
Connectors, jobs, workers, markets, tickers, candles, trades and trade history of a Collector.

Lists are `{"items": [...], "next_cursor": ...}`: ask again with `cursor` until it is null. Windows,
schedules and cursors are epoch milliseconds, dates are ISO 8601; queries and bodies accept either.
Everything that is not a success is an RFC 9457 problem with a stable `code`.
"""
TAGS = [
    {"name": "connectors", "description": "One per exchange: its limits, and whether it may work"},
    {"name": "jobs", "description": "What is to be collected, and how far it is"},
    {"name": "markets", "description": "What an exchange lists"},
    {"name": "tickers", "description": "The last price of every market"},
    {"name": "candles", "description": "The bars themselves"},
    {"name": "trades", "description": "The trades themselves"},
    {"name": "history", "description": "Confirmed trades of networks as exact buckets"},
    {"name": "reports", "description": "What is stored, what it lacks, and what was refused"},
    {"name": "events", "description": "Changes as they happen"},
    {"name": "troubles", "description": "What is wrong, and the state of everything"},
    {"name": "live", "description": "The last state of price streams"},
    {"name": "workers", "description": "Who is working, and where each one's metrics are"},
    {"name": "process", "description": "For probes and Prometheus"},
]
OF_A_JOB = (
    "show_job",
    "change_job",
    "replace_job",
    "delete_job",
    "pause_job",
    "resume_job",
    "run_job",
    "list_runs",
)
OF_A_CONNECTOR = (
    "show_connector",
    "change_connector",
    "delete_connector",
    "pause_connector",
    "resume_connector",
    "unblock_connector",
)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer with these problems of its own."""
    return {status: {"description": TITLES[status]} for status in statuses}


def tagged(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route whose answer has an `ETag`; 304 when it may say `not modified`."""
    unchanged = {304: {"description": "It is still the one of `If-None-Match`", "headers": ETAG}}
    return {200: {"headers": ETAG}, **{each: unchanged[each] for each in statuses}}


def job_links(at: str = "") -> dict[str, Any]:
    """Where one may go from an answer that holds a job, `at` a JSON pointer."""
    return _links(OF_A_JOB, "job_id", f"$response.body#{at}/id")


def connector_links() -> dict[str, Any]:
    """Where one may go from an answer that holds a connector."""
    return _links(OF_A_CONNECTOR, "exchange_id", "$response.body#/exchange_id")


def _links(operations: Iterable[str], parameter: str, value: str) -> dict[str, Any]:
    return {
        operation: {"operationId": operation, "parameters": {parameter: value}}
        for operation in operations
    }


def document(app: FastAPI, routes: Iterable[Guarded], *, with_keys: bool) -> dict[str, Any]:
    """The whole document. Routes require the scheme only when keys are configured."""
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
    bearer = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key; needed where keys are configured",
    }
    schema["components"]["securitySchemes"] = {"key": bearer}
    roles = {(guarded.path, guarded.method): guarded.role for guarded in routes}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            role = roles[path, method.upper()]
            _describe(operation, role, with_keys=with_keys, changes=method != "get")
            _link_next_page(operation)
    _lift_descriptions(schema)
    return schema


def _lift_descriptions(node: Any) -> None:
    """What `X | None` is stands with X; readers of the document look one level above."""
    if isinstance(node, list):
        for each in node:
            _lift_descriptions(each)
    if not isinstance(node, dict):
        return
    for each in list(node.values()):
        _lift_descriptions(each)
    told = [each.get("description") for each in node.get("anyOf") or () if isinstance(each, dict)]
    if any(told):
        node.setdefault("description", next(filter(None, told)))


def _describe(operation: dict[str, Any], role: Role, *, with_keys: bool, changes: bool) -> None:
    common = {400, 403, 415} if changes else {400, 403}
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


def _link_next_page(operation: dict[str, Any]) -> None:
    """From a page to the one after it: the same request, with the cursor of the response.

    An operation that answers a page only sometimes has no such link.
    """
    parameters = {
        each["name"]: f"$request.{each['in']}.{each['name']}"
        for each in operation.get("parameters", ())
    }
    page = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    if "cursor" in parameters and "anyOf" not in page.get("schema", {}):
        parameters["cursor"] = "$response.body#/next_cursor"
        link = {"operationId": operation["operationId"], "parameters": parameters}
        operation["responses"]["200"]["links"] = {"next_page": link}
