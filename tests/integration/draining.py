"""Answers that are read to their end and not kept, and what the process held meanwhile."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.local_api import Client


@dataclass(frozen=True)
class Drained:
    """`rows` may be short by a few: a separator may be cut in two by a piece's end."""

    size: int
    rows: int
    peak: int
    """Bytes that Python and Arrow held at most, more than before."""


async def drained(client: Client, url: str, asked: Mapping[str, str]) -> Drained:
    """A csv or json answer of rows. Client and server are this process: both are counted."""
    between = b"\n" if asked["format"] == "csv" else b"],["
    size = rows = peak = 0
    pool = pa.default_memory_pool()
    held_before = pool.bytes_allocated()
    tracemalloc.start(1)
    try:
        async with client.session.get(url, params=asked) as response:
            assert response.status == 200
            assert "Content-Length" not in response.headers
            async for piece in response.content.iter_any():
                size += len(piece)
                rows += piece.count(between)
                peak = max(peak, pool.bytes_allocated() - held_before)
        peak += tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return Drained(size, rows, peak)
