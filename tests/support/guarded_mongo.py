"""A mongod as the compose file runs it: with a user, a key file, and a set that is not made yet."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pymongo import AsyncMongoClient

from collector.cli.children import die_with_parent
from collector.mongo.mongod_binary import find_mongod
from tests.support.free_ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SET = "rs0"


@dataclass(frozen=True)
class GuardedMongo:
    """It lets `user` in with `password`, and has no primary before `initiate`."""

    port: int
    user: str
    password: str

    @property
    def uri(self) -> str:
        """Without the login."""
        return f"mongodb://127.0.0.1:{self.port}/?replicaSet={SET}&authSource=admin"

    async def initiate(self) -> None:
        """Makes the set, as the compose file's service of that name does."""
        member = {"_id": 0, "host": f"127.0.0.1:{self.port}"}
        async with self._client(username=self.user, password=self.password) as client:
            await client.admin.command("replSetInitiate", {"_id": SET, "members": [member]})

    async def make_user(self) -> None:
        async with self._client() as client:
            await client.admin.command("createUser", self.user, pwd=self.password, roles=["root"])

    def _client(self, **login: str) -> AsyncMongoClient[dict[str, Any]]:
        return AsyncMongoClient("127.0.0.1", self.port, directConnection=True, **login)


@asynccontextmanager
async def guarded_mongo(folder: Path, user: str, password: str) -> AsyncIterator[GuardedMongo]:
    """Started twice, as the image's own entrypoint does: open, to make the user, then guarded."""
    key = folder / "key"
    key.write_text("c29tZSBrZXkgb2YgdGhlIHNldA==\n")
    key.chmod(0o400)
    mongo = GuardedMongo(free_port(), user, password)
    async with _mongod(folder, mongo.port):
        await mongo.make_user()
    async with _mongod(folder, mongo.port, "--replSet", SET, "--keyFile", str(key)):
        yield mongo


@asynccontextmanager
async def _mongod(folder: Path, port: int, *more: str) -> AsyncIterator[None]:
    data = folder / "db"
    data.mkdir(exist_ok=True)
    where = ["--dbpath", str(data), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = await asyncio.create_subprocess_exec(
        str(find_mongod(os.environ)),
        *where,
        *("--nounixsocket", "--oplogSize", "64", "--wiredTigerCacheSizeGB", "0.25"),
        *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=0"),
        *more,
        stdout=asyncio.subprocess.DEVNULL,
        preexec_fn=die_with_parent(),
    )
    try:
        await _listening(process, port)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _listening(process: asyncio.subprocess.Process, port: int) -> None:
    async with asyncio.timeout(120):
        while True:
            assert process.returncode is None, "mongod ended"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return
