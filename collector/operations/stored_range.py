"""The part of a requested range that is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import InvalidInput

if TYPE_CHECKING:
    from collector.market.interval import Interval


def inside(start_ms: int | None, end_ms: int | None, there: Interval) -> tuple[int, int]:
    """Both ends, inside what there is; an end that is not named is that of all.

    InvalidInput for a range that ends before it begins.
    """
    if start_ms is not None and end_ms is not None and end_ms <= start_ms:
        raise InvalidInput("end", "end_before_start", "`end` must be after `start`")
    from_ms = there.from_ms if start_ms is None else max(start_ms, there.from_ms)
    to_ms = there.to_ms if end_ms is None else min(end_ms, there.to_ms)
    return from_ms, to_ms
