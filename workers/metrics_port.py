"""What this worker counted, for Prometheus, on a port of its own.

Counters belong to the process that counts, so every worker is scraped by itself and nothing is
counted twice. Where each of them listens stands in its document in `workers`, and the API lists
all of them for Prometheus to find.
"""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from collector.listening import host_name, host_names, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.keys import ApiKeys


@asynccontextmanager
async def metrics_port(host: str, port: int, keys: ApiKeys) -> AsyncIterator[str]:
    """Serves `/metrics` while the block runs; yields `host:port` as others can reach it."""

    names = host_names(host, keys)

    async def metrics(request: web.Request) -> web.Response:
        if names is not None and host_name(request.headers.get("Host", "")) not in names:
            return web.Response(status=400, text="this port answers to the names of loopback only")
        if keys and keys.role_of(_bearer(request)) is None:
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    reachable = socket.gethostname() if names is None else host
    sock = listen(host, port)
    app = web.Application()
    app.router.add_get("/metrics", metrics)
    # A scrape under way may end; a connection that Prometheus keeps open is no reason to wait.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        yield f"{reachable}:{sock.getsockname()[1]}"
    finally:
        await runner.cleanup()


def _bearer(request: web.Request) -> str:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
