"""Lengths of time in milliseconds, which is what every timestamp here is counted in."""

from __future__ import annotations

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS


def shown_span(ms: int) -> str:
    """`45 s`, `3 min`, `2 h`, `5 d`: the largest unit that fits, rounded down."""
    seconds = ms // 1000
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
