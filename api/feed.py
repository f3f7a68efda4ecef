"""Changes of jobs, connectors, networks and live prices: one change stream, many listeners.

The stream reports only that a document changed (statements that matter set `updated_at`; token
grants and lease renewals do not). For a moment the names of changed documents are gathered, then
all are read at once and handed out: a job that moved its cursor ten times in that moment is one
event, and ten listeners cost the database no more than one. Without listeners there is no stream at
all, because a watcher costs the database on every write.

An event carries the whole document, so only the newest of each matters: what a slow listener has
not taken yet is replaced, not queued. One that falls behind by more than MOST_HELD documents is
disconnected; it reconnects, reads the lists, and listens again.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pymongo.errors import PyMongoError

from api.schemas.circuit import CircuitEvent
from api.schemas.connector_view import ConnectorView
from api.schemas.history import NetworkEvent
from api.schemas.jobs import JobView
from api.schemas.live import LiveView
from api.trouble_watch import TroubleWatch
from collector.backoff import Backoff
from collector.connectors.connector import Connector
from collector.errors import DatabaseUnavailable
from collector.history.inbox import network_states
from collector.jobs.queue import JobQueue
from collector.streams.live_board import LiveBoard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.mongo.client import Database

GATHER_SECONDS = 0.1
MOST_HELD = 4096
MOST_GATHERED = 1000
OPEN_SECONDS = 5.0
_REOPEN = Backoff(base_seconds=0.2, max_seconds=5.0)
_GATHERED = ("jobs", "connectors", "circuits", "history_networks", "live")
_UPDATED = ["jobs", "connectors", "history_networks"]
_NOTICED: list[dict[str, Any]] = [
    {
        "$match": {
            "$or": [
                {"ns.coll": "live", "operationType": {"$in": ["insert", "replace", "update"]}},
                {
                    "ns.coll": {"$in": _UPDATED},
                    "operationType": {"$in": ["insert", "replace"]},
                },
                {
                    "ns.coll": {"$in": _UPDATED},
                    "updateDescription.updatedFields.updated_at": {"$exists": True},
                },
            ],
        }
    },
    {
        "$project": {
            "ns.coll": 1,
            "documentKey": 1,
            "updateDescription.updatedFields.circuit_changed_at": 1,
        }
    },
]


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something as it is now: `name` is job, connector, circuit, history, trouble or a kind of
    `live`.
    """

    name: str
    key: str
    data: bytes


class Listener:
    """One client's view of the feed."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], ServerEvent] = {}
        self._arrived = asyncio.Event()
        self.ended = False

    def offer(self, event: ServerEvent) -> None:
        self._held[event.name, event.key] = event
        if len(self._held) > MOST_HELD:
            self.end()
        self._arrived.set()

    def end(self) -> None:
        self.ended = True
        self._arrived.set()

    async def take(self, seconds: float) -> list[ServerEvent]:
        """What has happened since the last time; empty when nothing did for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        events, self._held = list(self._held.values()), {}
        return events


class ChangeFeed:
    """The process's one watcher. `running` keeps it at work."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue = JobQueue(database)
        self._live = LiveBoard(database)
        self._listeners: set[Listener] = set()
        self._wanted = asyncio.Event()
        self._open = asyncio.Event()
        self._changed: dict[str, set[Any]] = {name: set() for name in _GATHERED}
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._keep_watching(), name="feed")
        sending = asyncio.create_task(self._keep_sending(), name="feed:send")
        watch = TroubleWatch(self._database, self._report_troubles)
        looking = asyncio.create_task(watch.keep_going(self._wanted), name="feed:troubles")
        try:
            yield
        finally:
            self.close()
            watching.cancel()
            sending.cancel()
            looking.cancel()
            await asyncio.gather(watching, sending, looking, return_exceptions=True)

    def close(self) -> None:
        """Ends every listener and takes no more: the server is stopping."""
        self._closed = True
        for listener in self._listeners:
            listener.end()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Listener]:
        """Receives everything that changes from now on. DatabaseUnavailable when it cannot."""
        listener = Listener()
        self._listeners.add(listener)
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    await self._open.wait()
            except TimeoutError:
                raise DatabaseUnavailable("MongoDB does not report changes now") from None
            if self._closed:
                listener.end()
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._wanted.clear()

    def _report_troubles(self, troubles: bytes) -> None:
        for listener in self._listeners:
            listener.offer(ServerEvent("trouble", "", troubles))

    async def _keep_watching(self) -> None:
        failures = 0
        while True:
            await self._wanted.wait()
            try:
                async with self._database.changes(_NOTICED) as following:
                    failures = 0
                    self._open.set()
                    while self._listeners:
                        change = await following()
                        if change is not None:
                            self._gather(change)
                    # Before the stream is closed, which takes a moment: who comes now waits.
                    self._open.clear()
            except (PyMongoError, DatabaseUnavailable):
                self._open.clear()
                # What happened while the stream was away is not known: listeners start over.
                for listener in self._listeners:
                    listener.end()
                failures += 1
                await asyncio.sleep(_REOPEN.delay(failures, random.random()))

    async def _keep_sending(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(GATHER_SECONDS)
            try:
                circuits = self._take("circuits")
                changed = [*await self._jobs(), *await self._connectors(circuits)]
                more = [*await self._networks(), *await self._live_states()]
                for event in [*changed, *more]:
                    for listener in self._listeners:
                        listener.offer(event)
            except DatabaseUnavailable:
                continue  # The watcher notices too, and ends the listeners.

    async def _jobs(self) -> list[ServerEvent]:
        ids = self._take("jobs")
        if not ids:
            return []
        views = [JobView.of(job) for job in await self._queue.of_ids(ids)]
        return [ServerEvent("job", view.id, view.model_dump_json().encode()) for view in views]

    async def _live_states(self) -> list[ServerEvent]:
        """Prices, heartbeats and market states, each under the name of its kind."""
        ids = self._take("live")
        if not ids:
            return []
        documents = await self._live.of_ids(ids)
        return [
            ServerEvent(each["kind"], each["_id"], LiveView.of(each).model_dump_json().encode())
            for each in documents
        ]

    async def _connectors(self, circuits: list[Any]) -> list[ServerEvent]:
        ids = self._take("connectors")
        if not ids and not circuits:
            return []
        documents = await self._database.connectors.find({"_id": {"$in": [*ids, *circuits]}})
        now_ms = self._database.server_clock.now_ms()
        events = []
        for document in documents:
            connector = Connector.from_document(document)
            view = ConnectorView.of(connector, now_ms)
            events.append(
                ServerEvent("connector", view.exchange_id, view.model_dump_json().encode())
            )
            if document["_id"] in circuits:
                body = CircuitEvent.of(connector, now_ms).model_dump_json().encode()
                events.append(ServerEvent("circuit", view.exchange_id, body))
        return events

    async def _networks(self) -> list[ServerEvent]:
        ids = self._take("history_networks")
        if not ids:
            return []
        states = await network_states(self._database, ids)
        views = [NetworkEvent.of(network, state) for network, state in states.items()]
        return [
            ServerEvent("history", view.network, view.model_dump_json().encode()) for view in views
        ]

    def _gather(self, change: Mapping[str, Any]) -> None:
        """Records what changed. A circuit gate that moved is an event of its own."""
        key = change["documentKey"]["_id"]
        self._changed[change["ns"]["coll"]].add(key)
        fields = change.get("updateDescription", {}).get("updatedFields", {})
        if "circuit_changed_at" in fields:
            self._changed["circuits"].add(key)

    def _take(self, collection: str) -> list[Any]:
        changed = self._changed[collection]
        return [changed.pop() for _ in range(min(len(changed), MOST_GATHERED))]
