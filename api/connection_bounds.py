"""Connections that keep the server waiting are few, and not for long.

Anyone who can reach the port can open connections and send nothing, or send requests and read no
answer, without a key. Each one costs a file descriptor, and an unread answer up to 4 MB of the
kernel's memory. When descriptors are used up the server cannot accept, cannot reach MongoDB and
cannot open files. So:

    a request has to arrive whole within REQUEST_SECONDS, counted from the connection or from the
    answer before it;
    of an answer that fills the buffers, something has to be read every UNREAD_SECONDS;
    when more than `most` connections wait for a request, or for their reader, one is closed: the
    oldest of the address that has most of them. One that sends its request at once, and reads, is
    always served.

A request that has arrived is not limited here: it is logged, and needs a key where there are any.
"""

from __future__ import annotations

import resource
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from collector import logs, metrics

if TYPE_CHECKING:
    import asyncio

_log = logs.get("api")
REQUEST_SECONDS = 20.0
UNREAD_SECONDS = 20.0
LOG_EVERY_SECONDS = 60.0
MOST_WAITING = 500
MOST_UNREAD = 64
_MOST_FILES = 65_536


def waiting_allowed() -> int:
    """Raises this process's limit of open files as far as it may; how many connections may wait.

    At least half of the descriptors stay for requests under way, files and the database.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_WAITING if soft == resource.RLIM_INFINITY else min(MOST_WAITING, soft // 2)


class WaitingConnections:
    """The connections of one server that owe it a request, the oldest first."""

    late = "too_slow"
    crowd = "too_many"

    def __init__(self, most: int, seconds: float = REQUEST_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._waiting: dict[BoundedConnection, asyncio.TimerHandle] = {}
        self._dropped = 0
        self._logged_at: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: BoundedConnection) -> None:
        """From now on it has a limited time, and may have to go for others."""
        if connection in self._waiting:
            return
        self._begin(connection)
        if len(self._waiting) > self._most:
            counts = Counter(each.address for each in self._waiting)
            most = max(counts.values())
            oldest = next(each for each in self._waiting if counts[each.address] == most)
            self._drop(oldest, self.crowd)

    def discard(self, connection: BoundedConnection) -> None:
        """It owes nothing any more, or it is gone."""
        timer = self._waiting.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _begin(self, connection: BoundedConnection) -> None:
        timer = connection.loop.call_later(self._seconds, self._end, connection)
        self._waiting[connection] = timer

    def _end(self, connection: BoundedConnection) -> None:
        self._drop(connection, self.late)

    def _drop(self, connection: BoundedConnection, reason: str) -> None:
        self.discard(connection)
        connection.transport.abort()
        metrics.API_CONNECTIONS_DROPPED.labels(reason).inc()
        self._dropped += 1
        now = connection.loop.time()
        if self._logged_at is None or now - self._logged_at >= LOG_EVERY_SECONDS:
            _log.warning(
                "connections_dropped",
                reason=reason,
                dropped=self._dropped,
                client=connection.address,
            )
            self._logged_at, self._dropped = now, 0


class UnreadConnections(WaitingConnections):
    """The connections of one server whose answer is not being read. Slow readers may go on."""

    late = "unread"
    crowd = "too_many_unread"

    def __init__(self, most: int = MOST_UNREAD, seconds: float = UNREAD_SECONDS) -> None:
        super().__init__(most, seconds)
        self._unread_bytes: WeakKeyDictionary[BoundedConnection, int] = WeakKeyDictionary()

    def _begin(self, connection: BoundedConnection) -> None:
        self._unread_bytes[connection] = connection.transport.get_write_buffer_size()
        super()._begin(connection)

    def _end(self, connection: BoundedConnection) -> None:
        if connection.transport.get_write_buffer_size() < self._unread_bytes[connection]:
            self._begin(connection)
        else:
            super()._end(connection)


class BoundedConnection(H11Protocol):
    """uvicorn's connection, which reports whether it owes a request or does not read an answer."""

    def __init__(
        self,
        *arguments: Any,
        waiting: WaitingConnections,
        unread: UnreadConnections,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._waiting = waiting
        self._unread = unread

    @property
    def address(self) -> str:
        """Whose it is."""
        return (self.client or ("",))[0]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.discard(self)
        self._unread.discard(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.add(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.discard(self)

    def handle_events(self) -> None:
        super().handle_events()
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def _note(self) -> None:
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            self._waiting.add(self)
        else:
            self._waiting.discard(self)
