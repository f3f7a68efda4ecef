"""Connections that send no request, or half of one, do not keep others out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from api.connection_bounds import WaitingConnections
from tests.support.local_api import serving
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_api import Client

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow:"
HALF_A_BODY = (
    b"POST /api/v1/connectors HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)
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
        serving(database, tmp_path, waiting=WaitingConnections(5, 0.5)) as client,
        client.session.get("/api/v1/events") as listening,
    ):
        slow = await opened(client, b"")
        assert await ended(slow)
        assert await listening.content.readline() == b": listening\n"
        assert not listening.content.at_eof()
