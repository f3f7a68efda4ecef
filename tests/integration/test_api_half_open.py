"""Connections that send no whole request, or read no answer, do not keep others out."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from api.connection_bounds import UnreadConnections, WaitingConnections
from api.dashboard.files import dashboard_files
from tests.support.local_api import serving
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_api import Client

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow:"
HALF_A_BODY = (
    b"POST /api/v1/connectors HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)
LARGE = f"/assets/{dashboard_files().stamp}/vendor/lightweight-charts.js"
REQUESTS = f"GET {LARGE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 100
NEVER = 3_600.0
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def opened(client: Client, sent: bytes) -> Opened:
    url = client.session._base_url
    assert url is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def ended(connection: Opened) -> bool:
    """Waits for the other side to close it; whether it did so without an answer."""
    reader, writer = connection
    try:
        return not await asyncio.wait_for(reader.read(), 120)
    except ConnectionResetError:
        return True
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_the_oldest_that_waits_makes_room_for_one_more(
    database: Database, tmp_path: Path
) -> None:
    waiting = WaitingConnections(5, NEVER)
    async with serving(database, tmp_path, waiting=waiting) as client:
        slow = [await opened(client, HALF_A_HEAD) for _ in range(40)]
        await until(lambda: len(waiting) == 5, "five are left")
        assert (await client.get("/healthz")).status == 200
        assert all(await asyncio.gather(*map(ended, slow[:34])))
        for _, writer in slow[34:]:
            writer.close()
            await writer.wait_closed()


async def test_a_request_that_does_not_arrive_whole_in_time_is_dropped(
    database: Database, tmp_path: Path
) -> None:
    waiting = WaitingConnections(100, 0.05)
    async with serving(database, tmp_path, waiting=waiting) as client:
        slow = [await opened(client, sent) for sent in (b"", HALF_A_HEAD, HALF_A_BODY)]
        assert all(await asyncio.gather(*map(ended, slow)))
        assert len(waiting) == 0


async def test_a_listener_of_events_owes_no_request_and_stays(
    database: Database, tmp_path: Path
) -> None:
    async with (
        serving(database, tmp_path, waiting=WaitingConnections(5, 3.0)) as client,
        client.session.get("/api/v1/events") as listening,
    ):
        slow = await opened(client, b"")
        assert await ended(slow)
        assert await listening.content.readline() == b": listening\n"
        assert not listening.content.at_eof()


@asynccontextmanager
async def unread(client: Client, address: str) -> AsyncIterator[asyncio.Task[None]]:
    """Goes on sending requests and reads no answer. The task ends when it is hung up on."""
    url = client.session._base_url
    assert url is not None
    loop = asyncio.get_running_loop()
    with socket.socket() as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sender.bind((address, 0))
        sender.setblocking(False)
        await loop.sock_connect(sender, (url.host, url.port))

        async def send() -> None:
            with suppress(ConnectionError):
                while True:
                    await loop.sock_sendall(sender, REQUESTS)

        sending = asyncio.create_task(send())
        try:
            yield sending
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def test_a_connection_that_reads_no_answer_is_dropped(
    database: Database, tmp_path: Path
) -> None:
    bound = UnreadConnections(100, 0.2)
    async with serving(database, tmp_path, unread=bound) as client, AsyncExitStack() as stack:
        greedy = [await stack.enter_async_context(unread(client, "127.0.0.1")) for _ in range(3)]
        await asyncio.wait_for(asyncio.gather(*greedy), 120)
        assert len(bound) == 0
        assert (await client.get("/healthz")).status == 200


async def test_of_those_that_read_nothing_the_oldest_of_the_greediest_address_goes(
    database: Database, tmp_path: Path
) -> None:
    bound = UnreadConnections(3, NEVER)
    async with serving(database, tmp_path, unread=bound) as client, AsyncExitStack() as stack:
        modest = await stack.enter_async_context(unread(client, "127.0.0.2"))
        await until(lambda: len(bound) == 1, "one does not read")
        greedy = [await stack.enter_async_context(unread(client, "127.0.0.3")) for _ in range(6)]
        await until(lambda: sum(each.done() for each in greedy) == 4, "four were dropped")
        assert len(bound) == 3
        assert not modest.done()


class SlowReader:
    """A connection whose unread bytes are these, one after the other."""

    address = ""

    def __init__(self, *unread_bytes: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport = self
        self.left = list(unread_bytes)
        self.aborted = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return self.left.pop(0)

    def abort(self) -> None:
        self.aborted.set()


async def test_a_slow_reader_may_go_on_and_one_that_stopped_may_not() -> None:
    reader = SlowReader(900, 600, 600, 300, 300, 300, 0)
    UnreadConnections(1, 0.0).add(reader)  # type: ignore[arg-type]
    await reader.aborted.wait()
    assert reader.left == [0]
