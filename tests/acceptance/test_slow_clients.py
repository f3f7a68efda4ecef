"""Many clients at a time: some never finish a request, some listen, some do not read."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from tests.acceptance.api_process import api_process, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collector.mongo.client import Database

CONNECTIONS = 2_000
FILES_OF_THE_API = 1_024
LISTENERS, DEAF, JOBS = 450, 50, 300
LISTEN = b"GET /api/v1/events?types=job HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


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


async def _half(
    host: str, port: int, sent: bytes = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow:"
) -> socket.socket:
    """A plain socket: it stays open on this side, whatever the server does."""
    opened = socket.socket()
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, (host, port))
    with suppress(ConnectionError):
        opened.send(sent)
    return opened


async def _listening(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(LISTEN)
    await reader.readuntil(b": listening\n")
    return reader, writer


async def _hear(reader: asyncio.StreamReader, last: bytes) -> int:
    """How many bytes came before the event that holds `last`."""
    heard, tail = 0, b""
    while last not in tail:
        piece = await reader.read(2**16)
        assert piece, "the stream ended"
        heard, tail = heard + len(piece), tail[-len(last) :] + piece
    return heard


@pytest.mark.usefixtures("many_files")
async def test_five_hundred_listeners_hear_every_change_and_deaf_ones_cost_little(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    await ConnectorRegistry(database).ensure("simulated", Limits(1_000, 1_000))
    async with api_process(**settings_of(database, mongo_uri, tmp_path)) as api:
        url = api.session._base_url
        assert url is not None
        where = str(url.host), url.port or 0
        before_mb = api.peak_mb
        deaf = [await _half(*where, LISTEN) for _ in range(DEAF)]
        streams = [await _listening(*where) for _ in range(LISTENERS)]
        queue = JobQueue(database)
        began = time.monotonic()
        for number in range(JOBS):
            await queue.add(JobSpec("simulated", "count", symbol=f"S{number}/USDT"))
        added = time.monotonic()
        await queue.add(JobSpec("simulated", "count", symbol="LAST/USDT"))
        heard = await asyncio.gather(*(_hear(reader, b"LAST/USDT") for reader, _ in streams))
        after = time.monotonic()
        assert (await api.get("/healthz")).status == 200
        print(
            f"{LISTENERS} listeners: {JOBS} jobs added in {added - began:.1f} s, the last was heard"
            f" by all after {after - added:.1f} s, {sum(heard) / 2**20:.0f} MB sent,"
            f" {api.peak_mb - before_mb:.0f} MB more memory"
        )
        assert min(heard) > 100 * JOBS
        assert api.peak_mb - before_mb < 200
        for _, writer in streams:
            writer.close()
        for each in deaf:
            each.close()
