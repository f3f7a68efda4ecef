"""Moments as people type and read them. Everything is UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from collector.cli.failures import UsageMistake

if TYPE_CHECKING:
    from collector.market.interval import Interval

SPAN_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_SHORTEST_EPOCH = 12  # digits: 1973 in milliseconds
_EARLIEST_MS, _LATEST_MS = 0, 253_402_300_799_999  # 1970 to 9999


def moment_ms(text: str, now_ms: int, span: Literal["ago", "ahead"] = "ago") -> int:
    """`2025-01-01`, `2025-01-01T12:00Z`, epoch ms, or a span such as `30d` ago or ahead.

    Raises UsageMistake for anything else.
    """
    match = _SPAN.fullmatch(text)
    if match is not None:
        length = int(match[1]) * SPAN_MS[match[2]]
        found = now_ms - length if span == "ago" else now_ms + length
    elif text.isascii() and text.isdigit() and len(text) >= _SHORTEST_EPOCH:
        found = int(text)
    else:
        found = _of_iso(text)
    if not _EARLIEST_MS <= found <= _LATEST_MS:
        raise UsageMistake(f"{text!r} is not between 1970 and 9999")
    return found


def range_ms(start: str | None, end: str | None, now_ms: int, there: Interval) -> tuple[int, int]:
    """Both ends of a range, inside what there is; an end that was not typed is that of all.

    Raises UsageMistake for one that ends before it begins.
    """
    from_ms = there.from_ms if start is None else moment_ms(start, now_ms)
    to_ms = there.to_ms if end is None else moment_ms(end, now_ms)
    if start is not None and end is not None and to_ms <= from_ms:
        raise UsageMistake("--end is not after --start")
    return max(from_ms, there.from_ms), min(to_ms, there.to_ms)


def _of_iso(text: str) -> int:
    # Eight digits alone could be a date or a number: neither is guessed.
    try:
        date = datetime.fromisoformat(text if not text.isdigit() else "")
    except ValueError:
        raise UsageMistake(
            f"{text!r} is no moment: write 2025-01-01, 2025-01-01T12:00Z, epoch ms or a span (30d)"
        ) from None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return round(date.timestamp() * 1000)


def shown_moment(ms: int | None, *, seconds: bool = True) -> str:
    """`2025-01-01 12:00:00`, and `-` for none."""
    if not ms or not _EARLIEST_MS <= ms <= _LATEST_MS:
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


def shown_span(ms: int) -> str:
    """`45 s`, `3 min`, `2 h`, `5 d`: the largest unit that fits, rounded down."""
    seconds = ms // 1000
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
