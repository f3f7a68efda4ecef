"""Answers that are costly to make: one computation for all who ask, kept for a moment, few at once.

A report reads whole files. Whoever asks for the same one while it is made waits for it, and whoever
comes a moment later gets it with its age. When all who waited have left, the work ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from api.problems import Refusal
from api.reader_threads import busy
from collector.clock import Clock, SystemClock

Document = dict[str, Any]
KEEP_SECONDS = 15.0
"""How old an answer may be. Bars that close meanwhile are in the next one."""
MOST_AT_ONCE = 6
"""Fewer than the reads that may wait for a thread, so that other routes get one, too."""
MOST_KEPT = 32


class AllHaveLeft(Exception):
    """Nobody waits for this answer any more."""


@dataclass(slots=True)
class Stop:
    """Ends a computation from outside, also one that is in a thread."""

    _asked: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        self._asked.set()

    def check(self, _rows: int = 0) -> None:
        """Raises AllHaveLeft once it was asked for."""
        if self._asked.is_set():
            raise AllHaveLeft


Making = Callable[[Stop], Awaitable[Document]]
Leaving = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _UnderWay:
    task: asyncio.Task[Document]
    stop: Stop
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, and how many whole seconds ago it was made."""

    document: Document
    age_seconds: int
    fresh_seconds: int
    """How long it will be kept."""


class ReportAnswers:
    """The answers of one process."""

    def __init__(
        self,
        *,
        keep_seconds: float = KEEP_SECONDS,
        most_at_once: int = MOST_AT_ONCE,
        clock: Clock | None = None,
    ) -> None:
        self._keep_seconds = keep_seconds
        self._most_at_once = most_at_once
        self._clock = clock or SystemClock()
        self._kept: OrderedDict[Hashable, tuple[float, Document]] = OrderedDict()
        self._under_way: dict[Hashable, _UnderWay] = {}

    async def get(
        self, key: Hashable, make: Making, left: Leaving, *, anew: bool = False
    ) -> Answered:
        """The answer of that key: a kept one, that of a computation under way, or a new one.

        `left` returns when the client has gone. `anew` takes no kept one. A Refusal with 503 when
        too many others are being made.
        """
        kept = None if anew else self._fresh(key)
        if kept is not None:
            return kept
        shared = self._under_way.get(key) or self._begin(key, make)
        document = await self._waited(key, shared, left)
        return self._answered(self._clock.monotonic(), document)

    def _begin(self, key: Hashable, make: Making) -> _UnderWay:
        if len(self._under_way) >= self._most_at_once:
            raise busy(len(self._under_way))
        stop = Stop()

        async def made() -> Document:
            document = await make(stop)
            self._kept[key] = (self._clock.monotonic(), document)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return document

        shared = _UnderWay(asyncio.create_task(made(), name="report"), stop)
        shared.task.add_done_callback(lambda _: self._ended(key, shared))
        self._under_way[key] = shared
        return shared

    def _ended(self, key: Hashable, shared: _UnderWay) -> None:
        """Who comes from now on does not join it."""
        if self._under_way.get(key) is shared:
            del self._under_way[key]
        if shared.task.done() and not shared.task.cancelled():
            shared.task.exception()  # Everyone may have left; then it is not worth a warning.

    async def _waited(self, key: Hashable, shared: _UnderWay, left: Leaving) -> Document:
        gone = asyncio.ensure_future(left())
        shared.waiting += 1
        try:
            await asyncio.wait({shared.task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if shared.task.done():
                return shared.task.result()
            raise Refusal(499, "client_left", "the client has left")
        finally:
            gone.cancel()
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                shared.stop.ask()
                shared.task.cancel()
                self._ended(key, shared)

    def _fresh(self, key: Hashable) -> Answered | None:
        made_at, document = self._kept.get(key, (float("-inf"), {}))
        if self._clock.monotonic() - made_at >= self._keep_seconds:
            return None
        return self._answered(made_at, document)

    def _answered(self, made_at: float, document: Document) -> Answered:
        age = self._clock.monotonic() - made_at
        return Answered(document, int(age), max(0, int(self._keep_seconds - age)))
