"""A wire to MongoDB that loses the answer to a command it has passed on."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class LossyLink:
    """Forwards a loopback port to another. `lose_answer_to` arms it, once each."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._losing = b""
        self.lost = 0
        self.port = 0

    def lose_answer_to(self, command: str) -> None:
        """The next request that holds this word is done, and its answer is lost."""
        self._losing = command.encode()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            back = asyncio.create_task(self._pass_back(far_reader, writer))
            try:
                while data := await reader.read(65_536):
                    losing = bool(self._losing) and self._losing in data
                    if losing:
                        self._losing = b""
                        back.cancel()
                    far_writer.write(data)
                    await far_writer.drain()
                    if losing:
                        # Done there: its answer has come, and goes no further.
                        await asyncio.gather(back, return_exceptions=True)
                        await far_reader.read(65_536)
                        self.lost += 1
                        return
            finally:
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
                far_writer.close()
                writer.close()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def lossy_link(target: int) -> AsyncIterator[LossyLink]:
    link = LossyLink(target)
    server = await asyncio.start_server(link.forward, "127.0.0.1", 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
        await server.wait_closed()
