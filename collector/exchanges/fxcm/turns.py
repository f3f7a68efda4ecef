"""Whose call is next: the SDK makes one at a time.

Calls go in the order in which they came, those of series that go first before all others.
"""

from __future__ import annotations

import asyncio
import heapq
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Turns:
    """`first` are the keys of the series that go first."""

    def __init__(self, first: frozenset[str] = frozenset()) -> None:
        self._first = first
        self._busy = False
        self._numbers = count()
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Entered when it is this caller's turn; the next one's begins when it is left."""
        if self._busy:
            await self._wait(key)
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, key: str) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (key not in self._first, next(self._numbers), mine))
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()  # It was given the turn in the same moment.
            raise

    def _pass_on(self) -> None:
        """Gives the turn to the next one that still waits; it stays taken meanwhile."""
        while self._waiting:
            *_, waiter = heapq.heappop(self._waiting)
            if not waiter.done():
                waiter.set_result(None)
                return
        self._busy = False
