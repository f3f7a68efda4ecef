"""Time is an argument. Logic takes a `Clock`; only the edges make a real one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: the date, which may be wrong and may jump, and time passed, which does not."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, on this machine's clock."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; only differences are meaningful."""


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return _elapsed()


def _boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


# A laptop that sleeps stops Linux's monotonic clock, but not its leases and windows.
_elapsed = _boot_time if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


class ManualClock:
    """A clock that moves only when it is advanced."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._monotonic = 0.0

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._wall_ms += round(seconds * 1000)
        self._monotonic += seconds

    def set_wall(self, wall_ms: int) -> None:
        """Steps the date alone, as an operator or NTP does."""
        self._wall_ms = wall_ms


class FarClock:
    """Another machine's clock, estimated from its answers and carried on by our own elapsed time.

    An answer with a time in it was made between the moment its request was sent and the moment it
    came back. That bounds the difference of the two clocks, tightly for a quick answer. An estimate
    within the bounds stays; an answer that contradicts it moves it to the nearest bound. So a slow
    answer never spoils the estimate, and a clock that was set, or another machine that answers now,
    is noticed with the first answer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_ms: float | None = None
        self.observed_at = float("-inf")
        """When the last answer with a time came, on our own clock."""

    @property
    def is_known(self) -> bool:
        return self._offset_ms is not None

    @property
    def offset_ms(self) -> float:
        """What its time is ahead of our monotonic one. Call `observe` first."""
        assert self._offset_ms is not None
        return self._offset_ms

    def observe(self, reported_ms: float, sent: float, *, rounded_ms: float = 0) -> float:
        """Takes the time in an answer to what was sent at monotonic time `sent`.

        It was rounded down by less than `rounded_ms`. Returns by how much the estimate has moved.
        """
        received = self.observed_at = self._clock.monotonic()
        least, most = reported_ms - received * 1000, reported_ms + rounded_ms - sent * 1000
        known = self._offset_ms
        if known is None:
            self._offset_ms = (least + most) / 2
            return 0.0
        self._offset_ms = min(max(known, least), most)
        return self._offset_ms - known

    def now_ms(self) -> float:
        """Its time in epoch milliseconds. Call `observe` first."""
        return self.offset_ms + self._clock.monotonic() * 1000
