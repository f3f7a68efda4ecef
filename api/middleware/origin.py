"""Requests that a browser was tricked into sending are refused.

On loopback without keys, every client that can reach the port is trusted. A page from the internet
can make a browser on this machine reach it in three ways: a name that resolves to 127.0.0.1 (then
the Host header is that name), a form posted across origins (then the Origin header is the page's),
and an image or a link in it (then only Sec-Fetch-Site tells: the page sees no answer, but a report
would be made for it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from api import problems
from collector.listening import host_name

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


_OWN_PAGES = frozenset({"same-origin", "none"})


class Origin:
    """Checks Host against `names` (None: any name), Origin against Host, and Sec-Fetch-Site."""

    def __init__(self, app: ASGIApp, *, names: frozenset[str] | None) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._names is not None and host_name(host) not in self._names:
            response = problems.problem_response(
                400, "bad_host", "this server listens on loopback and answers to its names only"
            )
        elif (origin is not None and _authority(origin) != host.lower()) or (
            scope["path"].startswith("/api/")
            and headers.get("sec-fetch-site", "none") not in _OWN_PAGES
        ):
            response = problems.problem_response(
                403, "cross_origin", "requests from pages of other origins are not answered"
            )
        else:
            await self._app(scope, receive, send)
            return
        await response(scope, receive, send)


def _authority(origin: str) -> str:
    return origin.partition("://")[2].lower()
