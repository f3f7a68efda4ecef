"""Ranges of time cut into whole buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    It is halved as long as by `rows` a piece holds too many; a piece that holds nothing is left
    out.
    """
    buckets = (to_ms - from_ms) // bucket_ms
    held = rows(from_ms, to_ms) if buckets > 0 else 0
    if held == 0:
        return
    if buckets < 2 or held <= MOST_ROWS:
        yield from_ms, to_ms
        return
    middle = from_ms + buckets // 2 * bucket_ms
    yield from windows(from_ms, middle, bucket_ms, rows)
    yield from windows(middle, to_ms, bucket_ms, rows)
