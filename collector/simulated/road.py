"""Requests on their way to the exchange, and the moment each of them arrives."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
Arrive = Callable[[float], T]
"""What happens to a request at its moment of arrival, in milliseconds."""


@dataclass(order=True, slots=True)
class _Traveller(Generic[T]):
    due_ms: float
    number: int
    arrive: Arrive[T] = field(compare=False)
    arrived: asyncio.Future[T] = field(compare=False)


class Road(Generic[T]):
    """Lets requests in one by one, in the order in which they are due.

    A request arrives at the moment it was due, not when the event loop got round to it: a busy
    exchange would else look like a slow road. One whose sender has given up arrives all the same.
    """

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._under_way: list[_Traveller[T]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None

    async def travel(self, late_ms: float, arrive: Arrive[T]) -> T:
        """Calls `arrive` when the request is here, `late_ms` from now; gives what it returns."""
        now = self._now_ms()
        arrived: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        heapq.heappush(
            self._under_way, _Traveller(now + late_ms, next(self._numbers), arrive, arrived)
        )
        self._let_in(now)
        return await arrived

    def close(self) -> None:
        """Requests still under way never arrive."""
        if self._timer is not None:
            self._timer.cancel()
        for traveller in self._under_way:
            traveller.arrived.cancel()
        self._under_way = []

    def _let_in(self, now_ms: float) -> None:
        while self._under_way and self._under_way[0].due_ms <= now_ms:
            traveller = heapq.heappop(self._under_way)
            result = traveller.arrive(traveller.due_ms)
            with suppress(asyncio.InvalidStateError):  # Its sender has given up.
                traveller.arrived.set_result(result)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._under_way:
            seconds = (self._under_way[0].due_ms - now_ms) / 1000
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, lambda: self._let_in(self._now_ms()))
