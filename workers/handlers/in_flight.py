"""How many requests of one job are under way at a time.

Few are enough where the budget is the limit: the others would only wait for their tokens. Where the
budget is not spent, the distance to the exchange is the limit, and more requests under way bring
more pages. So the number grows as long as answers come and the budget lasts, and falls back as soon
as the budget is spent.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

FEWEST = 8
MOST = 32
_STEP = 4
"""So many more after as many answers as `FEWEST` with budget left: one burst does not widen it."""


class RequestSlots:
    """Places for requests, a number that follows the budget."""

    def __init__(self, is_spent: Callable[[], bool]) -> None:
        """`is_spent` returns whether the budget is spent now."""
        self._is_spent = is_spent
        self._places = asyncio.Semaphore(FEWEST)
        self._unspent = 0
        self.width = FEWEST

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for one request, until its answer was judged."""
        await self._places.acquire()
        try:
            yield
            self._unspent += 1
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._is_spent():
            self._unspent = 0
            if self.width > FEWEST:
                self.width -= 1
                return  # The place goes with its request.
        elif self._unspent >= FEWEST and self.width < MOST:
            self._unspent = 0
            self.width += _STEP
            for _ in range(_STEP):
                self._places.release()
        self._places.release()
