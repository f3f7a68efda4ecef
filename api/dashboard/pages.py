"""The addresses of the dashboard: its page for every view, and its files.

No key is needed here: these are the same files for everyone, and hold no data. Everything that the
page shows comes from the API, with the visitor's key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from api.dashboard.files import DashboardFiles, File

VIEWS = ("/", "/jobs", "/chart", "/quality", "/prices", "/add", "/login")
"""Each view has its own address, which may be reloaded, shared and opened in a new tab."""
_JOB = re.compile(r"/jobs/[0-9a-f]{24}")
_ASSET = re.compile(r"/assets/([0-9a-f]{12})/([A-Za-z0-9_./-]{1,100})")

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text ever becomes markup or code, not even by a mistake in a script.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class DashboardRoute:
    """What metrics count a request as."""

    path: str


class DashboardPages:
    """Answers its own addresses, and passes on everything else."""

    def __init__(self, app: ASGIApp, *, files: DashboardFiles) -> None:
        self._app = app
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._answer(scope)
        await (self._app if response is None else response)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return None
        path: str = scope["path"]
        if path in VIEWS or _JOB.fullmatch(path):
            scope["route"] = DashboardRoute("dashboard")
            headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
            return _response(self._files.page, scope, headers)
        found = _ASSET.fullmatch(path)
        if found is None:
            return None
        scope["route"] = DashboardRoute("dashboard files")
        stamp, name = found.groups()
        file = self._files.files.get(name) if stamp == self._files.stamp else None
        if file is None:
            # Of another version: the page that asks for it has to be loaded again.
            return Response(status_code=404)
        return _response(file, scope, {"Cache-Control": _FOR_EVER})


def _response(file: File, scope: Scope, headers: dict[str, str]) -> Response:
    """Compressed for who accepts it; without the body for HEAD."""
    sent = {**headers, "Vary": "Accept-Encoding"}
    data, packed = file.data, file.packed
    if packed is not None and "gzip" in Headers(scope=scope).get("accept-encoding", ""):
        data, sent["Content-Encoding"] = packed, "gzip"
    sent["Content-Length"] = str(len(data))
    body = b"" if scope["method"] == "HEAD" else data
    return Response(body, headers=sent, media_type=file.media_type)
