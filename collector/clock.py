"""Time is an argument. Logic takes a `Clock`; only the edges make a real one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: the date, which may be wrong and may jump, and time passed, which does not."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as this machine believes."""

    def monotonic(self) -> float:
        """Seconds since some moment; only differences mean anything."""


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves when it is told to."""

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
