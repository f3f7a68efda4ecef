"""The database's clock, carried forward between answers (clock.py).

Statements that decide something use `$$NOW` and need no estimate. This one is for what happens
around them: when to wake up, when a job runs next. Worker dates are never consulted, so they may
be minutes off and nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import logs
from collector.clock import FarClock

if TYPE_CHECKING:
    from datetime import datetime

    from collector.clock import Clock

STEP_MS = 1_000
"""A change by more than this is no correction: the server's clock was set."""

_log = logs.get("collector.mongo")


class ServerClock:
    """MongoDB's time, to within a round trip, moved on by this machine's elapsed time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._far = FarClock(clock)
        self._latest = 0
        self.first_reading: tuple[float, int] | tuple[None, None] = None, None
        """How far the server's time was ahead of our monotonic one at first, and what it was."""

    def anchor(self, server_now: datetime, sent: float) -> None:
        """Takes a `$$NOW` from an answer to a command that was sent at monotonic time `sent`."""
        self.anchor_ms(server_now.timestamp() * 1000, sent)

    def anchor_ms(self, server_ms: float, sent: float) -> None:
        """The same for a time in epoch milliseconds."""
        moved_ms = round(self._far.observe(server_ms, sent))
        if self.first_reading == (None, None):
            self.first_reading = self._far.offset_ms, round(server_ms)
        if abs(moved_ms) > STEP_MS:
            self._stepped(moved_ms)

    @property
    def is_known(self) -> bool:
        """Whether any answer has contained the server's time."""
        return self._far.is_known

    @property
    def offset_ms(self) -> float:
        """What the server's time is ahead of our monotonic one; grows when its clock is set
        ahead."""
        return self._far.offset_ms

    def is_stale(self, after_seconds: float) -> bool:
        """Whether no answer has contained the server's time for this long."""
        return self._clock.monotonic() - self._far.observed_at > after_seconds

    def now_ms(self) -> int:
        """Epoch milliseconds on the server; runs backwards only when the server's clock was set."""
        if not self._far.is_known:
            raise RuntimeError("the server's clock was not read yet")
        self._latest = max(self._latest, round(self._far.now_ms()))
        return self._latest

    def _stepped(self, by_ms: int) -> None:
        _log.warning("mongodb_clock_set", by_ms=by_ms)
        self._latest = 0
