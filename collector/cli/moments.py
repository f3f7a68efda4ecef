"""Times as users type and read them. Everything is UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from collector.cli.failures import UsageMistake
from collector.durations import shown_span
from collector.market.moment import EARLIEST_MS, LATEST_MS
from collector.operations.moments import moment_ms

if TYPE_CHECKING:
    from collector.market.interval import Interval


def range_ms(start: str | None, end: str | None, now_ms: int, there: Interval) -> tuple[int, int]:
    """Both ends of a range, inside what there is; an end that was not typed is that of all.

    Raises UsageMistake for one that ends before it begins.
    """
    from_ms = there.from_ms if start is None else moment_ms(start, now_ms)
    to_ms = there.to_ms if end is None else moment_ms(end, now_ms)
    if start is not None and end is not None and to_ms <= from_ms:
        raise UsageMistake("--end is not after --start")
    return max(from_ms, there.from_ms), min(to_ms, there.to_ms)


def shown_moment(ms: int | None, *, seconds: bool = True) -> str:
    """`2025-01-01 12:00:00`, and `-` for none."""
    if not ms or not EARLIEST_MS <= ms <= LATEST_MS:
        return "-"
    form = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)


def shown_age(ms: int | None, now_ms: int) -> str:
    """How far a moment is from now: `3 min ago`, `in 2 h`, and `-` for none."""
    if not ms:
        return "-"
    length = shown_span(abs(now_ms - ms))
    if length == "0 s":
        return "now"
    return f"{length} ago" if ms <= now_ms else f"in {length}"
