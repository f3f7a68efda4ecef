"""A replica set of three genuine mongods that a test may kill, freeze, cut off and set wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pymongo import AsyncMongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from tests.acceptance.stepped_mongo import SteppedClock, clock_shim
from tests.support.free_ports import free_ports
from tests.support.mongo_wires import Wires, mongo_wires
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pymongo.asynchronous.database import AsyncDatabase

NAME = "three"
COUNT = 3


@dataclass
class Member:
    """One mongod. `port` is its own, `address` that of the wire that leads to it."""

    name: str
    folder: Path
    mongod: Path
    clock: SteppedClock
    port: int
    address: int
    wires: Wires
    pid: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _client: AsyncMongoClient[dict[str, Any]] | None = None

    @property
    def admin(self) -> AsyncDatabase[dict[str, Any]]:
        """Past the wire: what the test itself wants of this member."""
        if self._client is None:
            self._client = AsyncMongoClient(
                "127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=1_000
            )
        return self._client.admin

    async def start(self) -> None:
        options = {
            "dbpath": str(self.folder),
            "port": str(self.port),
            "bind_ip": "127.0.0.1",
            "replSet": NAME,
            "oplogSize": "256",
            "wiredTigerCacheSizeGB": "0.25",
            "logpath": str(self.folder / "mongod.log"),
            "setParameter": "diagnosticDataCollectionEnabled=false",
        }
        self.folder.mkdir(exist_ok=True)
        given = [part for name, value in options.items() for part in (f"--{name}", value)]
        flags = ("--logappend", "--quiet", "--nounixsocket")
        # The shell waits for the end of its input, which comes when this process is gone.
        leash = ["sh", "-c", '"$@" & child=$!; read _; kill -9 $child', "sh"]
        self._process = subprocess.Popen(  # noqa: ASYNC220 - it is started, not waited for
            [*leash, str(self.mongod), *given, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await until(self._answers, f"{self.name} answers")
        self.wires.names[self.pid] = self.name

    async def kill(self) -> None:
        """At once, as by the system."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.to_thread(process.wait)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
        await self.kill()

    def freeze(self) -> None:
        """It takes connections and answers nothing, until `thaw`."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def _answers(self) -> bool:
        try:
            self.pid = (await self.admin.command("serverStatus"))["pid"]
        except PyMongoError:
            return False
        return True


@dataclass
class ThreeNodes:
    """The set, and the wires between its members and their clients."""

    members: list[Member]
    wires: Wires

    @property
    def names(self) -> list[str]:
        """Of the members, as the wires know them."""
        return [member.name for member in self.members]

    @property
    def uri(self) -> str:
        hosts = ",".join(f"127.0.0.1:{member.address}" for member in self.members)
        return f"mongodb://{hosts}/?replicaSet={NAME}"

    async def primary(self) -> Member:
        """The member that the others have elected."""
        found: list[Member] = []

        async def is_known() -> bool:
            for member in self.members:
                with suppress(PyMongoError):
                    hello = await member.admin.command("hello")
                    if hello["isWritablePrimary"]:
                        found.append(member)
            return bool(found)

        await until(is_known, "there is a primary")
        return found[0]

    async def others(self) -> list[Member]:
        """The secondaries."""
        primary = await self.primary()
        return [member for member in self.members if member is not primary]

    async def step_down(self) -> None:
        """The primary resigns, and another member is elected."""
        primary = await self.primary()
        with suppress(AutoReconnect, OperationFailure):
            await primary.admin.command("replSetStepDown", 20, secondaryCatchUpPeriodSecs=10)

    async def settled(self) -> None:
        """Returns when all members are up and have what the primary has."""

        async def is_so() -> bool:
            with suppress(PyMongoError):
                status = await (await self.primary()).admin.command("replSetGetStatus")
                states = sorted(member["stateStr"] for member in status["members"])
                return states == ["PRIMARY", "SECONDARY", "SECONDARY"]
            return False

        await until(is_so, "all three members are up")

    def set_clock(self, seconds_ahead: float) -> None:
        """Of all three machines at once, as by a time server that they share."""
        for member in self.members:
            member.clock.step_to(seconds_ahead)


@asynccontextmanager
async def three_nodes(folder: Path, *, election_ms: int) -> AsyncIterator[ThreeNodes]:
    """A set that has a primary. A member that hears nothing for `election_ms` holds an election."""
    library = clock_shim(folder)
    async with mongo_wires() as wires:
        wires.names[os.getpid()] = "test"
        members = []
        for number, port in enumerate(free_ports(COUNT), 1):
            name = f"node{number}"
            clock = SteppedClock(folder / name)
            address = await wires.lay(name, port)
            mongod = clock.mongod(library)
            members.append(
                Member(name, folder / f"{name}.data", mongod, clock, port, address, wires)
            )
        nodes = ThreeNodes(members, wires)
        try:
            await asyncio.gather(*(member.start() for member in members))
            config = {
                "_id": NAME,
                "members": [
                    {"_id": number, "host": f"127.0.0.1:{member.address}"}
                    for number, member in enumerate(members)
                ],
                "settings": {"electionTimeoutMillis": election_ms},
            }
            await members[0].admin.command("replSetInitiate", config)
            await nodes.settled()
            yield nodes
        finally:
            for member in members:
                with suppress(ProcessLookupError):
                    member.thaw()
                await member.close()
