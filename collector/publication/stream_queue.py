"""A bounded queue of one kind of message, and the account of what became of each.

Bars may not be lost: a full queue refuses them (`SinkBackpressure`), and they are published from
the lake later. Of prices, heartbeats and market states only the last counts: a newer one takes the
place of the one of the same exchange that still waits, and the older one counts as dropped.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from collector import metrics
from collector.errors import SinkBackpressure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueTotals:
    """enqueued = processed + dropped + depth, at any moment."""

    depth: int
    capacity: int
    enqueued: int
    processed: int
    dropped: int
    backpressure_events: int


class StreamQueue(Generic[T]):
    """Items wait by key, in the order in which their keys came. One task takes them.

    An item stays in the account of the depth until it is `done`.
    """

    def __init__(self, name: str, capacity: int, *, keeps_last: bool) -> None:
        self.name = name
        self._capacity = capacity
        self._keeps_last = keeps_last
        self._waiting: dict[Any, T] = {}
        self._serial = 0
        self._in_hand = 0
        self._arrived = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self.enqueued = self.processed = self.dropped = self.backpressure_events = 0

    @property
    def depth(self) -> int:
        return len(self._waiting) + self._in_hand

    def totals(self) -> QueueTotals:
        return QueueTotals(
            self.depth,
            self._capacity,
            self.enqueued,
            self.processed,
            self.dropped,
            self.backpressure_events,
        )

    def put(self, item: T, key: Any = None) -> None:
        """Raises SinkBackpressure when there is no room; the item is then not in the queue."""
        if self._keeps_last and self._waiting.pop(key, None) is not None:
            self._drop()
        if self.depth >= self._capacity:
            self.backpressure_events += 1
            metrics.STREAM_BACKPRESSURE.labels(self.name).inc()
            raise SinkBackpressure(f"the queue {self.name} holds {self._capacity} messages already")
        self._serial += 1
        self._waiting[key if self._keeps_last else self._serial] = item
        self.enqueued += 1
        metrics.STREAM_ENQUEUED.labels(self.name).inc()
        self._settled.clear()
        self._arrived.set()
        self._show_depth()

    async def take(self) -> tuple[Any, T]:
        """The next item with its key, when there is one. It is in hand until `done` or `fail`."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        key = next(iter(self._waiting))
        item = self._waiting.pop(key)
        self._in_hand = 1
        return key, item

    def newest(self, key: Any, item: T) -> T:
        """The item to go on with after a pause: a newer one of its key takes its place."""
        newer = self._waiting.pop(key, None)
        if newer is None:
            return item
        self._drop()
        return newer

    def done(self) -> None:
        """The item in hand was delivered."""
        self.processed += 1
        metrics.STREAM_PROCESSED.labels(self.name).inc()
        self._put_down()

    def failed(self) -> None:
        """The item in hand cannot be delivered."""
        self._drop()
        self._put_down()

    async def settled(self) -> None:
        """Returns when nothing waits and nothing is in hand."""
        await self._settled.wait()

    def abandon(self) -> None:
        """Whatever is left is given up."""
        left, self._in_hand = self.depth, 0
        self._waiting.clear()
        for _ in range(left):
            self._drop()
        self._settled.set()
        self._show_depth()

    def _drop(self) -> None:
        self.dropped += 1
        metrics.STREAM_DROPPED.labels(self.name).inc()

    def _put_down(self) -> None:
        self._in_hand = 0
        if not self._waiting:
            self._settled.set()
        self._show_depth()

    def _show_depth(self) -> None:
        metrics.STREAM_DEPTH.labels(self.name).set(self.depth)
