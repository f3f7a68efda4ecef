"""The thread that reads the parent's lines, keeps the lease, and notices the end."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
from typing import TYPE_CHECKING

from .ending import LAST_SECONDS, YIELD_SECONDS, Ending, elapsed
from .failures import RefusedRequest, described
from .lines import Lines
from .request import MalformedRequest, Request, parsed

if TYPE_CHECKING:
    from .outbox import Outbox

# A parent that never sends a line is gone.
_FIRST_LEASE_SECONDS = 60.0
_WAITING_LIMIT = 64
# At most this long between two looks at the clock, which the machine's sleep moves.
_LOOK_SECONDS = 1.0


class Inbox:
    def __init__(self, fd: int, outbox: Outbox, ending: Ending) -> None:
        self._fd = fd
        self._outbox = outbox
        self._ending = ending
        self._lines = Lines()
        self._waiting: queue.Queue[Request | None] = queue.Queue(_WAITING_LIMIT)
        self._ends_at = 0.0
        self._busy: str | None = None

    def start(self) -> None:
        self._renew(_FIRST_LEASE_SECONDS)
        threading.Thread(target=self._run, name="inbox", daemon=True).start()

    def next(self) -> Request | None:
        """For the main thread: the next request; None when the end has come."""
        self._busy = None
        request = self._waiting.get()
        self._busy = None if request is None else request.op
        return request

    def _run(self) -> None:
        reason = self._read()
        self._ending.no_later_than(LAST_SECONDS + YIELD_SECONDS)
        if reason != "parent_gone":
            self._outbox.event("error", reason, "logging out")
        with contextlib.suppress(queue.Full):  # full: the main thread is busy
            self._waiting.put_nowait(None)
        if not self._ending.taken_within(YIELD_SECONDS):
            self._ending.take()

    def _read(self) -> str:
        """Returns when the sidecar has to end, and why."""
        while True:
            left = self._ends_at - elapsed()
            if left <= 0:
                return "lease_expired"
            if not select.select([self._fd], [], [], min(left, _LOOK_SECONDS))[0]:
                continue
            chunk = os.read(self._fd, 1 << 16)
            if not chunk:
                return "parent_gone"
            for line in self._lines.feed(chunk):
                self._take(line)

    def _take(self, line: bytes | None) -> None:
        try:
            request = parsed(line)
        except MalformedRequest as error:
            if error.request_id is None:
                self._outbox.event("error", "protocol", str(error))
            else:
                self._outbox.refuse(
                    error.request_id, described(RefusedRequest("protocol", str(error)))
                )
            return
        self._renew(request.lease_seconds)
        if request.op == "ping":
            # Answered here: while the main thread waits for the SDK the parent still has to know
            # that this process runs.
            self._outbox.answer(request.id, {"busy": self._busy})
            return
        try:
            self._waiting.put_nowait(request)
        except queue.Full:
            busy = RefusedRequest("busy", f"{_WAITING_LIMIT} requests are waiting")
            self._outbox.refuse(request.id, described(busy))

    def _renew(self, lease_seconds: float) -> None:
        self._ends_at = elapsed() + lease_seconds
        self._ending.no_later_than(lease_seconds + LAST_SECONDS + 2 * YIELD_SECONDS)
