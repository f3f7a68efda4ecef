"""Ranges of time cut into whole buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.durations import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_ROWS = 131_072
"""Rows of the ledger that are unpacked at a time."""


def ceil(ts: int, bucket_ms: int) -> int:
    """The beginning of the first bucket that does not begin before `ts`."""
    return -(-ts // bucket_ms) * bucket_ms


def windows(
    from_ms: int, to_ms: int, bucket_ms: int, rows: Callable[[int, int], float]
) -> Iterator[tuple[int, int]]:
    """A range that begins and ends with a bucket, in pieces that fit into memory.

    They are a day long, or shorter where by `rows` a day holds too many, and left out where it
    holds nothing.
    """
    length = max(1, DAY_MS // bucket_ms) * bucket_ms
    for begin in range(from_ms, to_ms, length):
        yield from _halved(begin, min(begin + length, to_ms), bucket_ms, rows)


def _halved(
    from_ms: int, to_ms: int, bucket_ms: int, rows: Callable[[int, int], float]
) -> Iterator[tuple[int, int]]:
    buckets, held = (to_ms - from_ms) // bucket_ms, rows(from_ms, to_ms)
    if held == 0:
        return
    if buckets < 2 or held <= MOST_ROWS:
        yield from_ms, to_ms
        return
    middle = from_ms + buckets // 2 * bucket_ms
    yield from _halved(from_ms, middle, bucket_ms, rows)
    yield from _halved(middle, to_ms, bucket_ms, rows)
