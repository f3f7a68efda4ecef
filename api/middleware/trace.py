"""The outermost layer: a request's id, its log line, its metrics, and headers on every answer.

Also the last resort: an uncaught exception becomes a problem here, with the request's id on it,
instead of a bare 500 from the server.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING

import structlog
from starlette.datastructures import Headers, MutableHeaders

from api import problems
from collector import logs, metrics
from collector.text import shortened

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logs.get("api")
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""On every answer, unless the route has set one of them itself."""

LONGEST_PATH = 200
"""In a line of the log, which anybody may cause without a key."""

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class Trace:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        scope["request_id"] = request_id
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        began = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_marked)
            except Exception:
                _log.exception("request_crashed", method=scope["method"], path=_path(scope))
                if status:
                    # Half of the answer is sent. Cutting the connection shows the client that it is
                    # incomplete.
                    raise
                await problems.of_defect()(scope, receive, send_marked)
            finally:
                _note(scope, status, time.perf_counter() - began)


def _path(scope: Scope) -> str:
    return shortened(scope["path"], LONGEST_PATH)


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex


def _note(scope: Scope, status: int, seconds: float) -> None:
    # The route's own path and not the client's: a metric must not grow with what people type.
    route = getattr(scope.get("route"), "path", "none")
    method = scope["method"] if scope["method"] in _METHODS else "other"
    metrics.API_REQUESTS.labels(method, route, str(status)).inc()
    metrics.API_REQUEST_SECONDS.labels(method, route).observe(seconds)
    # The query stays out: nothing in it is secret today, and nothing in the log will be tomorrow.
    role = scope.get("role")
    _log.info(
        "request",
        method=method,
        path=_path(scope),
        status=status,
        ms=round(seconds * 1000, 1),
        client=(scope.get("client") or ("",))[0],
        role=None if role is None else role.word,
        key=scope.get("key_name"),
    )
