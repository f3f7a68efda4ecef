"""The database's clock, carried forward between answers.

Statements that decide something use `$$NOW` and need no estimate. This one is for what happens
around them: when to wake up, when a job runs next. Worker dates are never consulted, so they may
be minutes off and nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from collector.clock import Clock


class ServerClock:
    """MongoDB's time, to within a round trip, moved on by this machine's monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_ms: float | None = None
        self._latest = 0

    def anchor(self, server_now: datetime, sent: float) -> None:
        """Takes a `$$NOW` from an answer to a command that was sent at monotonic time `sent`."""
        middle = (sent + self._clock.monotonic()) / 2
        self._offset_ms = server_now.timestamp() * 1000 - middle * 1000

    def now_ms(self) -> int:
        """Epoch milliseconds on the server; never runs backwards."""
        if self._offset_ms is None:
            raise RuntimeError("the server's clock was not read yet")
        self._latest = max(self._latest, round(self._offset_ms + self._clock.monotonic() * 1000))
        return self._latest
