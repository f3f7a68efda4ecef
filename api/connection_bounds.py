"""Connections that have not sent a whole request yet are few, and not for long.

Anyone who can reach the port can open connections and send nothing, without a key and without a
request that would be logged. Each one costs a file descriptor, and when those are used up the
server cannot accept, cannot reach MongoDB and cannot open files. So:

    a request has to arrive whole within REQUEST_SECONDS, counted from the connection or from the
    answer before it;
    when more than `most` connections are waiting for a request, the oldest of them is closed: one
    that sends its request at once is always served.

A request that has arrived is not limited here: it is logged, and needs a key where there are any.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from collector import logs, metrics

if TYPE_CHECKING:
    import asyncio

_log = logs.get("api")
REQUEST_SECONDS = 20.0
LOG_EVERY_SECONDS = 60.0
MOST_WAITING = 500
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
        timer = connection.loop.call_later(self._seconds, self._drop, connection, "too_slow")
        self._waiting[connection] = timer
        if len(self._waiting) > self._most:
            self._drop(next(iter(self._waiting)), "too_many")

    def discard(self, connection: BoundedConnection) -> None:
        """Its request has arrived, or it is gone."""
        timer = self._waiting.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _drop(self, connection: BoundedConnection, reason: str) -> None:
        self.discard(connection)
        connection.transport.abort()
        metrics.API_CONNECTIONS_DROPPED.labels(reason).inc()
        self._dropped += 1
        now = connection.loop.time()
        if self._logged_at is None or now - self._logged_at >= LOG_EVERY_SECONDS:
            client = (connection.client or ("",))[0]
            _log.warning("connections_dropped", reason=reason, dropped=self._dropped, client=client)
            self._logged_at, self._dropped = now, 0


class BoundedConnection(H11Protocol):
    """uvicorn's connection, which reports whether it owes a request."""

    def __init__(self, *arguments: Any, waiting: WaitingConnections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._waiting = waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.discard(self)
        super().connection_lost(exc)

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
