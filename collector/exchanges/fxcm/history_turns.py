"""Whose call is next: the SDK makes one at a time.

Series that go first have a queue of their own. While both queues wait they take turns, so a call of
such a series waits for one other call at most, and never keeps the others from theirs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_Queue = deque[asyncio.Future[None]]


class HistoryTurns:
    """`first` are the keys of the series that go first."""

    def __init__(self, first: frozenset[str] = frozenset()) -> None:
        self._first = first
        self._busy = False
        self._ahead: _Queue = deque()
        self._others: _Queue = deque()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Entered when it is this caller's turn; the next one's begins when it is left."""
        mine = self._ahead if key in self._first else self._others
        if self._busy:
            await self._wait(mine)
        self._busy = True
        try:
            yield
        finally:
            self._pass_on(mine)

    async def _wait(self, mine: _Queue) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mine.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(mine)  # It was given the turn in the same moment.
            raise

    def _pass_on(self, last: _Queue) -> None:
        """Gives the turn to the next caller that still waits; until then it stays taken."""
        other = self._others if last is self._ahead else self._ahead
        for queue in (other, last):
            while queue:
                waiting = queue.popleft()
                if not waiting.done():
                    waiting.set_result(None)
                    return
        self._busy = False
