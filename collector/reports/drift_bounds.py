"""How far a clock can be from ours, narrowed by every answer that contains its time. Pure.

An answer dates itself to the second. One of them leaves a doubt of more than half a second; many
leave a few milliseconds, because each excludes a part of what the others allow. Bounds widen with
time, as clocks run at slightly different speeds. An answer that contradicts them begins anew: one
of the clocks was set.
"""

from __future__ import annotations

from collector.reports.clock_drift import Drift

WIDENS_MS_PER_S = 0.1
"""A clock that gains or loses this much in a second is worse than any in use."""


class DriftBounds:
    """The least and the most that the other clock is ahead, in milliseconds."""

    def __init__(self) -> None:
        self._least = float("-inf")
        self._most = float("inf")
        self._at = 0.0

    def narrow(self, least_ms: float, most_ms: float, at: float) -> Drift:
        """Takes what an answer allows, at monotonic time `at`; returns what all allow."""
        wider = WIDENS_MS_PER_S * (at - self._at)
        least, most = self._least - wider, self._most + wider
        if least_ms > most or most_ms < least:
            least, most = least_ms, most_ms
        self._least, self._most, self._at = max(least_ms, least), min(most_ms, most), at
        return Drift((self._least + self._most) / 2, (self._most - self._least) / 2)
