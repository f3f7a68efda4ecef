"""Times as users type and read them. Everything is UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from collector.cli.failures import UsageMistake
from collector.durations import shown_span
from collector.market.moment import EARLIEST_MS, LATEST_MS
from collector.operations.moments import moment_ms


def typed_range(start: str | None, end: str | None, now_ms: int) -> tuple[int | None, int | None]:
    """Both ends of a range; None for one that was not typed.

    Raises UsageMistake for a range that ends before it begins.
    """
    from_ms = None if start is None else moment_ms(start, now_ms)
    to_ms = None if end is None else moment_ms(end, now_ms)
    if from_ms is not None and to_ms is not None and to_ms <= from_ms:
        raise UsageMistake("--until is not after --since")
    return from_ms, to_ms


def shown_date(date: datetime | None) -> int | None:
    """A date as epoch ms."""
    return None if date is None else round(date.timestamp() * 1000)


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
