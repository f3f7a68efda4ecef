"""A wire to a server that a test can cut and mend."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class CuttableLink:
    """Forwards a loopback port to another until it is cut; then refuses."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for stream in list(self._streams):
            stream.transport.abort()
        await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams.add(writer)
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            self._streams.discard(writer)
            writer.close()


@asynccontextmanager
async def cuttable_link(target: int) -> AsyncIterator[CuttableLink]:
    link = CuttableLink(target)
    await link.mend()
    try:
        yield link
    finally:
        await link.cut()
