"""How far this machine's clock is from an exchange's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.reports.check import Check

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.clock import Clock

MAX_DRIFT_MS = 500
ASKED = 3


@dataclass(frozen=True, slots=True)
class Drift:
    """`drift_ms` is ahead of us when positive, give or take `doubt_ms`: half of the round trip."""

    drift_ms: float
    doubt_ms: float

    @property
    def ok(self) -> bool:
        """Too far only when the round trip cannot explain it."""
        return abs(self.drift_ms) - self.doubt_ms <= MAX_DRIFT_MS

    def is_off(self, *, was_off: bool) -> bool:
        """Whether the clocks are too far apart.

        What was off is over only well inside the limit, so that a drift near it is reported once.
        """
        limit = MAX_DRIFT_MS / 2 if was_off else MAX_DRIFT_MS
        return abs(self.drift_ms) - self.doubt_ms > limit

    def check(self) -> Check:
        made = Check()
        if not self.ok:
            made.note(1, [{"drift_ms": round(self.drift_ms)}])
        return made


async def clock_drift(server_ms: Callable[[], Awaitable[int]], clock: Clock) -> Drift:
    """Measures three times and uses the quickest answer."""
    measured = []
    for _ in range(ASKED):
        began, asked_at = clock.wall_ms(), clock.monotonic()
        theirs = await server_ms()
        doubt_ms = (clock.monotonic() - asked_at) * 1000 / 2
        measured.append(Drift(theirs - (began + doubt_ms), doubt_ms))
    return min(measured, key=lambda each: each.doubt_ms)
