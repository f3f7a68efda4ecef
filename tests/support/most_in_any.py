"""How full a sliding window ever was."""

from __future__ import annotations

from bisect import bisect_left


def most_in_any(period: float, times: list[float]) -> int:
    """The largest number of moments in any interval of this length. They are in order."""
    return max(
        position - bisect_left(times, moment - period) for position, moment in enumerate(times, 1)
    )
