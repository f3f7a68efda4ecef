"""Two thousand connections that never finish their request, against an API with 1,024 files."""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.api_process import api_process, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collector.mongo.client import Database

CONNECTIONS = 2_000
FILES_OF_THE_API = 1_024


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process holds the other ends of all connections."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], CONNECTIONS + 500), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
async def test_half_sent_requests_do_not_lock_the_api(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with api_process(**settings_of(database, mongo_uri, tmp_path)) as api:
        resource.prlimit(api.process.pid, resource.RLIMIT_NOFILE, (FILES_OF_THE_API,) * 2)
        url = api.session._base_url
        assert url is not None
        slow = [await _half(str(url.host), url.port or 0) for _ in range(CONNECTIONS)]
        assert (await api.get("/healthz")).status == 200
        assert (await api.get("/readyz")).status == 200
        [line] = api.process.lines("connections_dropped")
        assert line["reason"] == "too_many"
        for each in slow:
            each.close()


async def _half(host: str, port: int) -> socket.socket:
    """A plain socket: it stays open on this side, whatever the server does."""
    opened = socket.socket()
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, (host, port))
    with suppress(ConnectionError):
        opened.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow:")
    return opened
