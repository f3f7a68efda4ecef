"""Changes are never made by a form, nor by anything else that a browser sends without asking.

A page of any site may make a browser post a form to this machine, or send a request whose body has
one of a form's types: the browser asks nobody before. Origin (origin.py) refuses these where the
browser names the page. Here they are refused by what they are. A request with JSON needs a question
first, which is not answered: there is no CORS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from api import problems

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})


class FormRefusal:
    """Refuses changes in a form's type with 415."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None
        if scope["type"] == "http" and scope["method"] not in _READING:
            refusal = _refusal(Headers(scope=scope))
        await (self._app if refusal is None else refusal)(scope, receive, send)


def _refusal(headers: Headers) -> Response | None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _OF_FORMS:
        return problems.problem_response(
            415, "json_only", "send JSON with `Content-Type: application/json`, or no body"
        )
    return None
