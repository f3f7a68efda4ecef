"""FXCM's servers, as far as one session sees them: logins, prices, permission for history.

It keeps one session an account, as FXCM does: a second login ends the first. Everything that
reaches it is in its journal, and tests wait for entries there.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

# A Wednesday noon in New York.
NOON_MS = 1_705_510_800_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How the server behaves towards the next login."""

    refuse: str | None = None
    """The text a login is refused with."""
    silent: bool = False
    """Never answers a login."""
    ask_for_session: bool = False
    """Wants the name of a trading session first."""
    tables: str = "TABLES_LOADED"
    ready_after: int | None = 0
    """How often `is_ready` returns False before True; None: always False."""
    now_ms: int | None = NOON_MS
    """The server's time; None: by the clock."""
    first_ms: int = 0
    """There is no history from before."""
    history_error: str | None = None
    hold_history: bool = False
    """Does not answer history until `release_history`."""
    ignore_logout: bool = False
    second_login: str = "abort"
    """The first session's end: `abort`, its process dies; `lost`, it receives that status."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that reached the server."""

    what: str
    user: str
    pid: int
    fields: dict[str, Any] = field(default_factory=dict)
    at: float = field(default_factory=time.monotonic)


class Connection:
    """One login, from its first line to its end."""

    def __init__(self, server: FakeServer, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._writer = writer
        self.user = ""
        self.pid = 0

    def say(self, what: str, **fields: Any) -> None:
        self._writer.write(json.dumps({"say": what, **fields}).encode() + b"\n")

    def answer(self, message: dict[str, Any], **fields: Any) -> None:
        self.say("answer", number=message["number"], **fields)

    def hear(self, message: dict[str, Any]) -> None:
        if message["op"] == "login":
            self.user, self.pid = message["user"], message["pid"]
        self._server.write_down(Entry(message["op"], self.user, self.pid, message))
        getattr(self, f"_on_{message['op']}")(message)

    def welcome(self) -> None:
        plan = self._server.plan
        self.say("status", status="CONNECTED", ready_after=plan.ready_after)
        self.say("tables", status="TABLES_LOADING")
        self.say("tables", status=plan.tables)

    def _on_login(self, message: dict[str, Any]) -> None:
        plan = self._server.plan
        if plan.silent:
            return
        if plan.refuse is not None:
            self.say("refused", text=plan.refuse)
            return
        self._server.take_over(self)
        if plan.ask_for_session:
            self.say("status", status="TRADING_SESSION_REQUESTED")
        else:
            self.welcome()

    def _on_logout(self, message: dict[str, Any]) -> None:
        if not self._server.plan.ignore_logout:
            self.say("bye")
            self._server.forget(self)
            self._writer.close()

    def _on_history(self, message: dict[str, Any]) -> None:
        if self._server.plan.hold_history:
            self._server.held.append((self, message))
        else:
            self.answer_history(message)

    def _on_burst_done(self, message: dict[str, Any]) -> None:
        pass

    def _on_deafened(self, message: dict[str, Any]) -> None:
        pass

    def _on_spawned(self, message: dict[str, Any]) -> None:
        pass

    def answer_history(self, message: dict[str, Any]) -> None:
        plan = self._server.plan
        now_ms = time.time_ns() // 1_000_000 if plan.now_ms is None else plan.now_ms
        self.answer(message, now_ms=now_ms, first_ms=plan.first_ms, error=plan.history_error)


class FakeServer:
    def __init__(self) -> None:
        self.plan = Plan()
        self.journal: list[Entry] = []
        self.held: list[tuple[Connection, dict[str, Any]]] = []
        self.sessions: dict[str, Connection] = {}
        self.second_logins = 0
        """How often a user logged in that had a session already."""
        self._grown = asyncio.Condition()
        self._told: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self.sessions.values():
            connection._writer.close()
        await asyncio.gather(*self._told)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/Hosts.jsp"

    def change(self, **fields: Any) -> None:
        self.plan = replace(self.plan, **fields)

    @property
    def session(self) -> Connection:
        """The only one there is."""
        (connection,) = self.sessions.values()
        return connection

    def say(self, what: str, **fields: Any) -> None:
        """To the only session there is: tick, burst, status, print, spawn, abort..."""
        self.session.say(what, **fields)

    def tick(self, instrument: str, bid: float, ask: float, time_ms: int = NOON_MS) -> None:
        prices = {"bid": bid, "ask": ask, "high": ask, "low": bid, "volume": 7}
        self.say("tick", instrument=instrument, time_ms=time_ms, **prices)

    def burst(self, count: int, *instruments: str) -> None:
        self.say("burst", count=count, instruments=instruments or ["EUR/USD"], time_ms=NOON_MS)

    def release_history(self) -> None:
        self.change(hold_history=False)
        for connection, message in self.held:
            connection.answer_history(message)
        self.held.clear()

    def count(self, what: str) -> int:
        return sum(entry.what == what for entry in self.journal)

    async def seen(self, what: str, count: int = 1, seconds: float = 120) -> Entry:
        """The `count`-th entry of a kind, as soon as it is there."""
        async with asyncio.timeout(seconds), self._grown:
            await self._grown.wait_for(lambda: self.count(what) >= count)
        return [entry for entry in self.journal if entry.what == what][count - 1]

    def write_down(self, entry: Entry) -> None:
        self.journal.append(entry)
        told = asyncio.create_task(self._tell())
        self._told.add(told)
        told.add_done_callback(self._told.discard)

    def take_over(self, connection: Connection) -> None:
        before = self.sessions.get(connection.user)
        self.second_logins += before is not None
        self.sessions[connection.user] = connection
        if before is not None and self.plan.second_login == "abort":
            before.say("abort")
        elif before is not None:
            before.say("status", status="SESSION_LOST")

    def forget(self, connection: Connection) -> None:
        if self.sessions.get(connection.user) is connection:
            del self.sessions[connection.user]

    async def _tell(self) -> None:
        async with self._grown:
            self._grown.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, writer)
        with suppress(ConnectionError):
            while line := await reader.readline():
                connection.hear(json.loads(line))
        self.forget(connection)
        self.write_down(Entry("gone", connection.user, connection.pid))
        writer.close()
