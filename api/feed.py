"""Changes of jobs, connectors, networks and live prices: one change stream, many listeners.

For a moment the names of changed documents are gathered, then all are read at once and handed out:
a job that moved its cursor ten times in that moment is one event, and ten listeners cost the
database no more than one. Without listeners there is no stream at all, because a watcher costs the
database on every write.

What a slow listener has not taken yet is replaced, not queued. One that falls behind by more than
MOST_HELD documents is disconnected; it reconnects with the id of its last event, and gets what it
missed.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pymongo.errors import PyMongoError

from api.changed_documents import NOTICED, ChangedDocuments, events_of
from api.listener import EventFilter, Listener, ServerEvent
from api.missed_events import missed_events
from api.trouble_watch import TroubleWatch
from collector.backoff import Backoff
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database

GATHER_SECONDS = 0.1
OPEN_SECONDS = 5.0
_REOPEN = Backoff(base_seconds=0.2, max_seconds=5.0)


class ChangeFeed:
    """The process's one watcher. `running` keeps it at work."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: set[Listener] = set()
        self._wanted = asyncio.Event()
        self._open = asyncio.Event()
        self._changed = ChangedDocuments()
        self._seen: str | None = None
        """The place in the stream up to which changes were gathered."""
        self._handed_out: str | None = None
        """The place up to which every listener was offered everything."""
        self._troubles: bytes | None = None
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watch = TroubleWatch(self._database, self._report_troubles)
        tasks = (
            asyncio.create_task(self._keep_watching(), name="feed"),
            asyncio.create_task(self._keep_sending(), name="feed:send"),
            asyncio.create_task(watch.keep_going(self._wanted), name="feed:troubles"),
        )
        try:
            yield
        finally:
            self.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Ends every listener and takes no more: the server is stopping."""
        self._closed = True
        for listener in self._listeners:
            listener.end()

    @asynccontextmanager
    async def listening(
        self, wanted: EventFilter | None = None, since: str | None = None
    ) -> AsyncIterator[Listener]:
        """Receives everything that changes from now on, and what changed after the event `since`.

        DatabaseUnavailable when it cannot.
        """
        listener = Listener(wanted)
        self._listeners.add(listener)
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    await self._open.wait()
            except TimeoutError:
                raise DatabaseUnavailable("MongoDB does not report changes now") from None
            listener.position = self._handed_out
            if since is not None:
                await self._catch_up(listener, since)
            if self._closed:
                listener.end()
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._wanted.clear()
                self._troubles = None

    async def _catch_up(self, listener: Listener, since: str) -> None:
        until = self._handed_out
        for event in await missed_events(self._database, since, until):
            listener.offer(event)
        if self._troubles is not None:
            listener.offer(ServerEvent("trouble", "", self._troubles))

    def _report_troubles(self, troubles: bytes) -> None:
        self._troubles = troubles
        for listener in self._listeners:
            listener.offer(ServerEvent("trouble", "", troubles))

    async def _keep_watching(self) -> None:
        failures = 0
        while True:
            await self._wanted.wait()
            try:
                async with self._database.changes(NOTICED) as following:
                    failures = 0
                    self._changed = ChangedDocuments()
                    self._seen = self._handed_out = following.place
                    self._open.set()
                    while self._listeners:
                        change = await following()
                        if change is not None:
                            self._changed.gather(change)
                        self._seen = following.place
                    # Before the stream is closed, which takes a moment: who comes now waits.
                    self._open.clear()
            except (PyMongoError, DatabaseUnavailable):
                self._open.clear()
                # What happened while the stream was away is not known: listeners come back.
                for listener in self._listeners:
                    listener.end()
                failures += 1
                await asyncio.sleep(_REOPEN.delay(failures, random.random()))

    async def _keep_sending(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(GATHER_SECONDS)
            try:
                await self._send()
            except DatabaseUnavailable:
                continue  # The watcher notices too, and ends the listeners.

    async def _send(self) -> None:
        place, changed = self._seen, self._changed
        keys = changed.take()
        is_all = not changed
        for event in await events_of(self._database, keys):
            for listener in self._listeners:
                listener.offer(event)
        if is_all and changed is self._changed:
            self._handed_out = place
            for listener in self._listeners:
                listener.position = place
