"""Problems: every answer that is not a success, as RFC 9457 describes them.

A problem has a stable `code` that a program may match on. Errors of the library keep their own
codes; the table below has the status of each kind.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from api.schemas.problem import FieldError, Problem
from collector import logs
from collector.errors import (
    BadRequest,
    Changed,
    CollectorError,
    CostNeverFits,
    InvalidInput,
    JobConflict,
    NeedsOperator,
    NotFound,
    RetryLater,
    SchemaMismatch,
    StopWork,
)
from collector.history.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request

_log = logs.get("api")
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 2
"""Used when an error has no duration."""

TITLES = {
    400: "Bad request",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    412: "Changed meanwhile",
    413: "Body too large",
    415: "Unsupported media type",
    422: "Cannot be processed",
    429: "Too many wrong keys",
    500: "Internal error",
    503: "Not available now",
}
_STATUS: dict[type[CollectorError], int] = {
    NotFound: 404,
    JobConflict: 409,
    StopWork: 409,
    Changed: 412,
    BadRequest: 422,
    CostNeverFits: 422,
    InvalidInput: 422,
    Refused: 422,
    RetryLater: 503,
    SchemaMismatch: 503,
    NeedsOperator: 500,
    CollectorError: 500,
}
_CODES = {400: "malformed_request", 404: "no_such_route", 405: "method_not_allowed"}


class Refusal(HTTPException):
    """A request that this API refuses, with the code and the fields that are to blame."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, headers)
        self.code = code
        self.errors = tuple(errors)


def problem_response(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
    parts: dict[str, str] | None = None,
) -> Response:
    """A whole answer. Text that is not valid Unicode, as a client may send it, is escaped."""
    problem = Problem(
        type=f"urn:collector:problem:{code}",
        title=TITLES.get(status, "Problem"),
        status=status,
        detail=_plain(detail),
        code=code,
        errors=[
            error.model_copy(update={"field": _plain(error.field), "reason": _plain(error.reason)})
            for error in errors
        ],
        parts=parts,
    )
    content = orjson.dumps(problem.model_dump(exclude_none=True))
    return Response(content, status, headers=headers, media_type=MEDIA_TYPE)


def status_of(error: CollectorError) -> int:
    """By the nearest ancestor that the table names."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def of_error(error: CollectorError) -> Response:
    """The problem of an error that the library raised."""
    status = status_of(error)
    headers: dict[str, str] = {}
    if status == 503:
        wait_ms = error.retry_after_ms if isinstance(error, RetryLater) else None
        seconds = RETRY_AFTER_SECONDS if wait_ms is None else max(1, math.ceil(wait_ms / 1000))
        headers["Retry-After"] = str(seconds)
    if status == 500:
        # The message may name files of this machine; the log has it, the client need not.
        _log.error("request_failed", code=error.code, error=str(error))
        return problem_response(500, error.code, "the server could not do it; see its log")
    errors = []
    if isinstance(error, InvalidInput):
        near = list(error.near)
        errors = [FieldError(field=error.field, reason=str(error), code=error.code, near=near)]
    return problem_response(status, error.code, str(error), errors=errors, headers=headers)


def of_defect() -> Response:
    """The problem of an unexpected exception."""
    return problem_response(500, "internal_error", "an unexpected error; see the server's log")


def install(app: FastAPI, methods: Mapping[str, Iterable[str]]) -> None:
    """Makes every error of the app a problem. `methods` are those of each path."""
    app.state.allow = {path: ", ".join(sorted(each)) for path, each in methods.items()}
    app.add_exception_handler(CollectorError, _on_collector_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_collector_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CollectorError)
    return of_error(error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, Refusal):
        return problem_response(
            error.status_code,
            error.code,
            error.detail,
            errors=error.errors,
            headers=error.headers,
        )
    headers = dict(error.headers or {})
    path = getattr(request.scope.get("route"), "path", None)
    if error.status_code == 405 and path in request.app.state.allow:
        # The router names the methods of the first route it met; a path may have several.
        headers["Allow"] = request.app.state.allow[path]
    code = _CODES.get(error.status_code, "http_error")
    # FastAPI's only 400: bytes that are no text, or JSON that cannot be read.
    blamed = FieldError(field="body", reason=error.detail, code=code)
    errors = [blamed] if error.status_code == 400 else []
    return problem_response(error.status_code, code, error.detail, errors=errors, headers=headers)


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [_field_error(issue) for issue in error.errors()]
    detail = "; ".join(f"{each.field}: {each.reason}" for each in errors[:3])
    if len(errors) > 3:
        detail += f"; and {len(errors) - 3} more"
    return problem_response(422, "invalid_request", detail, errors=errors)


def _field_error(issue: dict[str, Any]) -> FieldError:
    # The first part is body, query or path; a body that is no JSON has a position instead.
    place, *rest = [str(part) for part in issue["loc"]]
    if place == "query":
        rest = rest[:1]  # A parameter may be repeated; its name is enough.
    field = place if issue["type"] == "json_invalid" else ".".join(rest) or place
    return FieldError(field=field[:200], reason=issue["msg"][:500], code=issue["type"])


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
