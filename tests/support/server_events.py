"""Reading server-sent events as a client does."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


async def listening(response: aiohttp.ClientResponse) -> None:
    """Returns when nothing that happens from now on is missed."""
    assert response.headers["Content-Type"].startswith("text/event-stream")
    async with asyncio.timeout(120):
        assert await response.content.readline() == b": listening\n"


async def next_event(response: aiohttp.ClientResponse) -> tuple[str, Any]:
    """The next event, comments passed over."""
    async with asyncio.timeout(120):
        while not (line := await response.content.readline()).startswith(b"event: "):
            assert line, "the stream ended"
        data = await response.content.readline()
    return line[7:].decode().strip(), json.loads(data.removeprefix(b"data: "))
