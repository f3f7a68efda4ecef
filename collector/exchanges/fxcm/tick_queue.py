"""Ticks between the sidecar's pipe and their reader: bounded, with every loss counted."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from collector.exchanges.fxcm.wire import Batch, Tick


@dataclass(frozen=True, slots=True)
class TickCounts:
    """Since the client was made. Of all ticks the SDK gave, each is in exactly one of the first
    four, but for those that were on their way when a sidecar was killed."""

    delivered: int = 0
    """Put into this queue."""
    incomplete: int = 0
    """Without a price or a time."""
    dropped_in_sidecar: int = 0
    """The sidecar's queue was full: the parent did not read."""
    dropped_here: int = 0
    """This queue was full: they were not taken. They no longer count as delivered."""
    events_dropped: int = 0
    """Changes of the session or of a table that the sidecar had to drop: the oldest ones."""


class TickQueue:
    """The newest `limit` ticks. When it is full the oldest make room."""

    def __init__(self, limit: int) -> None:
        self._ticks: deque[Tick] = deque(maxlen=limit)
        self._limit = limit
        self._filled = asyncio.Event()
        self._closed = False
        self._counts = TickCounts()
        self._seen = (0, 0)  # ticks and events this sidecar has dropped, by its last batch

    @property
    def counts(self) -> TickCounts:
        return self._counts

    def new_sidecar(self) -> None:
        """The next batches are another process's, which counts from nothing."""
        self._seen = (0, 0)

    def put(self, batch: Batch) -> None:
        ticks_before, events_before = self._seen
        self._seen = (batch.dropped, batch.events_dropped)
        lost = max(0, len(self._ticks) + len(batch.ticks) - self._limit)
        self._ticks.extend(batch.ticks)
        counts = self._counts
        self._counts = replace(
            counts,
            delivered=counts.delivered + len(batch.ticks) - lost,
            incomplete=counts.incomplete + batch.incomplete,
            dropped_in_sidecar=counts.dropped_in_sidecar + batch.dropped - ticks_before,
            dropped_here=counts.dropped_here + lost,
            events_dropped=counts.events_dropped + batch.events_dropped - events_before,
        )
        if batch.ticks:
            self._filled.set()

    def close(self) -> None:
        """Ends every reading once what is left has been read."""
        self._closed = True
        self._filled.set()

    async def take(self) -> Sequence[Tick]:
        """All that wait, at least one; none when the queue was closed."""
        await self._has_some()
        taken = list(self._ticks)
        self._ticks.clear()
        return taken

    async def _has_some(self) -> bool:
        """Waits for a tick; False when the queue was closed and none is left."""
        while not self._ticks and not self._closed:
            self._filled.clear()
            await self._filled.wait()
        return bool(self._ticks)

    async def __aiter__(self) -> AsyncIterator[Tick]:
        # One at a time: a reader that stops in the middle leaves the rest to the next.
        while await self._has_some():
            yield self._ticks.popleft()
