"""Answers that came together are read one after another, with everything else in between.

Reading a page takes milliseconds in which the event loop does nothing else. Thirty pages in a row
would hold up a request that has its token for a tenth of a second, and it would arrive that late.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Lets one task continue in each round of the event loop, in the order they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._going_round = False

    async def mine(self) -> None:
        """Returns when it is this task's turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._going_round:
            self._going_round = True
            loop.call_soon(self._next)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._going_round = False
