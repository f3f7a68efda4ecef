"""Changes of jobs and connectors, as they happen: one change stream, any number of listeners.

The stream reports only that a document changed (statements that matter set `updated_at`; token
grants and lease renewals do not). For a moment the names of changed documents are gathered, then
all are read at once and handed out: a job that moved its cursor ten times in that moment is one
event, and ten listeners cost the database no more than one. With nobody listening there is no
stream at all, for a watcher costs the database on every write.

An event carries the whole document, so only the newest of each matters: what a slow listener has
not taken yet is replaced, not queued. One that falls behind by more than MOST_HELD documents is
let go; it comes back, reads the lists, and listens again.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pymongo.errors import PyMongoError

from api.schemas.connectors import CircuitEvent, ConnectorView
from api.schemas.jobs import JobView
from collector.backoff import Backoff
from collector.connectors.connector import Connector
from collector.errors import DatabaseUnavailable
from collector.jobs.queue import JobQueue
from collector.mongo.client import keeping_cancellation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.mongo.client import Database

GATHER_SECONDS = 0.1
MOST_HELD = 4096
MOST_GATHERED = 1000
OPEN_SECONDS = 5.0
_REOPEN = Backoff(base_seconds=0.2, max_seconds=5.0)
_GATHERED = ("jobs", "connectors", "circuits")
_NOTICED: list[dict[str, Any]] = [
    {
        "$match": {
            "ns.coll": {"$in": ["jobs", "connectors"]},
            "$or": [
                {"operationType": {"$in": ["insert", "replace"]}},
                {"updateDescription.updatedFields.updated_at": {"$exists": True}},
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
class Event:
    """Something as it is now: `name` is job, connector or circuit, `data` its JSON."""

    name: str
    key: str
    data: bytes


class Listener:
    """One client's view of the feed."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Event] = {}
        self._arrived = asyncio.Event()
        self.ended = False

    def offer(self, event: Event) -> None:
        self._held[event.name, event.key] = event
        if len(self._held) > MOST_HELD:
            self.end()
        self._arrived.set()

    def end(self) -> None:
        self.ended = True
        self._arrived.set()

    async def take(self, seconds: float) -> list[Event]:
        """What has happened since the last time; empty when nothing did for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        events, self._held = list(self._held.values()), {}
        return events


class Feed:
    """The process's one watcher. `running` keeps it at work."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue = JobQueue(database)
        self._listeners: set[Listener] = set()
        self._wanted = asyncio.Event()
        self._open = asyncio.Event()
        self._changed: dict[str, set[Any]] = {name: set() for name in _GATHERED}
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._keep_watching(), name="feed")
        telling = asyncio.create_task(self._keep_telling(), name="feed:tell")
        try:
            yield
        finally:
            self.close()
            watching.cancel()
            telling.cancel()
            await asyncio.gather(watching, telling, return_exceptions=True)

    def close(self) -> None:
        """Ends every listener and takes no more: the server is stopping."""
        self._closed = True
        for listener in self._listeners:
            listener.end()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Listener]:
        """Hears everything that changes from now on. DatabaseUnavailable when it cannot."""
        listener = Listener()
        self._listeners.add(listener)
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    await self._open.wait()
            except TimeoutError:
                raise DatabaseUnavailable("MongoDB does not tell its changes now") from None
            if self._closed:
                listener.end()
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._wanted.clear()

    async def _keep_watching(self) -> None:
        failures = 0
        while True:
            await self._wanted.wait()
            try:
                async with await self._database.watch(_NOTICED) as stream:
                    failures = 0
                    self._open.set()
                    while self._listeners:
                        with keeping_cancellation():
                            change = await stream.try_next()
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

    async def _keep_telling(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(GATHER_SECONDS)
            try:
                circuits = self._take("circuits")
                for event in [*await self._jobs(), *await self._connectors(circuits)]:
                    for listener in self._listeners:
                        listener.offer(event)
            except DatabaseUnavailable:
                continue  # The watcher notices too, and ends the listeners.

    async def _jobs(self) -> list[Event]:
        ids = self._take("jobs")
        if not ids:
            return []
        views = [JobView.of(job) for job in await self._queue.of_ids(ids)]
        return [Event("job", view.id, view.model_dump_json().encode()) for view in views]

    async def _connectors(self, circuits: list[Any]) -> list[Event]:
        ids = self._take("connectors")
        if not ids and not circuits:
            return []
        documents = await self._database.connectors.find({"_id": {"$in": [*ids, *circuits]}})
        now_ms = self._database.server_clock.now_ms()
        events = []
        for document in documents:
            connector = Connector.from_document(document)
            view = ConnectorView.of(connector, now_ms)
            events.append(Event("connector", view.exchange_id, view.model_dump_json().encode()))
            if document["_id"] in circuits:
                said = CircuitEvent.of(connector, now_ms).model_dump_json().encode()
                events.append(Event("circuit", view.exchange_id, said))
        return events

    def _gather(self, change: Mapping[str, Any]) -> None:
        """Notes what changed. A circuit gate that moved is news of its own."""
        key = change["documentKey"]["_id"]
        self._changed[change["ns"]["coll"]].add(key)
        fields = change.get("updateDescription", {}).get("updatedFields", {})
        if "circuit_changed_at" in fields:
            self._changed["circuits"].add(key)

    def _take(self, collection: str) -> list[Any]:
        changed = self._changed[collection]
        return [changed.pop() for _ in range(min(len(changed), MOST_GATHERED))]
