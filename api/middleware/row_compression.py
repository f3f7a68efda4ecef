"""Long answers of rows go compressed to who accepts gzip.

Only candles and trades: they are large and repeat themselves. Events must not wait in a
compressor's buffer, Parquet is compressed already, and small answers gain nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware.gzip import GZipMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PATHS = frozenset({"/api/v1/candles", "/api/v1/trades", "/api/v1/history/candles"})
LEVEL = 5


class RowCompression:
    """gzip for the routes that stream rows."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, minimum_size=1_000, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = self._plain
        if scope["type"] == "http" and scope["path"] in PATHS:
            already = b"format=parquet" in scope["query_string"]
            chosen = self._plain if already else self._compressed
        await chosen(scope, receive, send)
