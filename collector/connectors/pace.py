"""How fast a process spends a budget that is spent as fast as it comes back. Pure.

A sliding window returns tokens as they were taken: after one burst, every period begins with a
burst. Requests of a burst queue in this process and at the exchange, so they are late, and a window
pays for lateness with its margin. So once the budget of a short period has been spent, tokens are
taken a few at a time, spaced by the time a page takes to be read. That delays the end of the burst
by less than a second, once; from then on requests leave at that spacing by themselves. While the
window has room, and for long periods, where a margin costs little, no request is delayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.connectors.window import Window

SHORT_PERIOD_MS = 10_000
APART_SECONDS = 0.008
"""How far apart tokens are taken, at most; never more than the window allows on average."""
FASTER = 0.8
LEAST_SECONDS = 0.025
"""Commands are not made more frequent than this: several tokens go together."""


@dataclass(slots=True)
class Pace:
    """Times are monotonic seconds."""

    next_at: float = 0.0
    """When tokens may be taken next."""
    _until: float = 0.0
    _apart: float = 0.0

    def spent(self, reason: str, windows: Iterable[Window], now: float) -> None:
        """A window was found spent: go slowly for one period of it."""
        for window in windows:
            if window.quota_name == reason and window.period_ms <= SHORT_PERIOD_MS:
                self._until = now + window.period_ms / 1000
                average = window.period_ms / 1000 / window.limit
                self._apart = min(FASTER * average, APART_SECONDS)

    def most(self, now: float) -> int | None:
        """How many tokens to take now; None for any number."""
        if now >= self._until:
            return None
        if now < self.next_at:
            return 0
        return max(1, round(LEAST_SECONDS / self._apart))

    def took(self, cost: int, now: float) -> None:
        """Records what was granted."""
        if now < self._until:
            self.next_at = max(now, self.next_at) + cost * self._apart
