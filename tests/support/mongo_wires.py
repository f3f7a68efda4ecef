"""The wires between the members of a replica set and everybody who talks to them.

Every member is known by the address of a proxy. The proxy sees which process has called, so that
any two of them can be cut off from each other: nothing of what they send arrives until they are
joined again, as on a network that drops packets. Processes are told apart by /proc, which takes
Linux.
"""

from __future__ import annotations

import asyncio
import os
import random
import struct
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

OP_MSG = 2013
LOSABLE = frozenset({b"aggregate", b"delete", b"find", b"findAndModify", b"insert", b"update"})
"""Commands with a purpose. Without answers to `hello` a driver would hardly send any."""
SILENT_ONE_IN = 5
"""After one in so many lost answers the connection stays open, and the driver waits in vain."""


@dataclass
class Wires:
    """Who is who, who is cut off from whom, and whose answers are lost."""

    names: dict[int, str] = field(default_factory=dict)
    """Process ids, each with the name of the process."""
    losing: float = 0.0
    """The share of answers to workers that are lost after the server has acted."""
    lost: int = 0
    _cut: set[frozenset[str]] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def lay(self, name: str, port: int) -> int:
        """A port of loopback that leads to the process `name`, which listens at another."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._carry(name, port, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def cut(self, some: Iterable[str], others: Iterable[str]) -> None:
        """From now on nothing passes between any of `some` and any of `others`."""
        others = list(others)
        self._cut |= {frozenset((one, other)) for one in some for other in others if one != other}

    def join(self) -> None:
        """Everything passes again; what was sent meanwhile arrives now."""
        self._cut.clear()
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(
        self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        far_writer = None
        try:
            ends = frozenset((name, self._caller(writer.get_extra_info("peername")[1])))
            await self._pass(ends)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            asked: set[int] = set()
            async with asyncio.TaskGroup() as group:
                to = group.create_task(self._requests(ends, asked, reader, far_writer))
                back = group.create_task(self._answers(ends, asked, far_reader, writer))
                await asyncio.wait((to, back), return_when=asyncio.FIRST_COMPLETED)
                to.cancel()
                back.cancel()
        except OSError:
            return  # The member is down.
        finally:
            for each in (writer, far_writer):
                if each is not None:
                    each.transport.abort()

    async def _requests(
        self,
        ends: frozenset[str],
        asked: set[int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        from_worker = any(name.startswith("worker") for name in ends)
        async for message in _messages(reader):
            await self._pass(ends)
            if self.losing and from_worker and _command(message) in LOSABLE:
                asked.add(_number(message, 4))
            with suppress(OSError):
                writer.write(message)
                await writer.drain()

    async def _answers(
        self,
        ends: frozenset[str],
        asked: set[int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        async for message in _messages(reader):
            await self._pass(ends)
            number = _number(message, 8)
            if number in asked:
                asked.discard(number)
                if random.random() < self.losing:
                    self.lost += 1
                    if self.lost % SILENT_ONE_IN:
                        return
                    continue
            with suppress(OSError):
                writer.write(message)
                await writer.drain()

    async def _pass(self, ends: frozenset[str]) -> None:
        while ends in self._cut:
            await self._changed.wait()

    def _caller(self, port: int) -> str:
        """The name of the process whose end of the connection has this port."""
        inodes = {f"socket:[{inode}]" for inode in _inodes(port)}
        for pid, name in self.names.items():
            folder = f"/proc/{pid}/fd"
            with suppress(OSError):  # It has ended.
                if any(_is_one_of(f"{folder}/{each}", inodes) for each in os.listdir(folder)):
                    return name
        return "somebody"


@asynccontextmanager
async def mongo_wires() -> AsyncIterator[Wires]:
    wires = Wires()
    try:
        yield wires
    finally:
        await wires.close()


def _inodes(port: int) -> Iterator[str]:
    """Of the sockets of this machine that have this port."""
    end = f"0100007F:{port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines():
        words = line.split()
        if words[1] == end:
            yield words[9]


def _is_one_of(descriptor: str, inodes: set[str]) -> bool:
    try:
        return os.readlink(descriptor) in inodes
    except OSError:
        return False  # Closed meanwhile.


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Whole messages of MongoDB's protocol, until the connection ends."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            length = await reader.readexactly(4)
            yield length + await reader.readexactly(struct.unpack("<i", length)[0] - 4)


def _number(message: bytes, place: int) -> int:
    number: int = struct.unpack_from("<i", message, place)[0]
    return number


def _command(message: bytes) -> bytes:
    """The name of a command: the first key of its document."""
    if _number(message, 12) != OP_MSG or message[20]:
        return b""
    return message[26 : message.index(b"\0", 26)]
