"""Two who use the database at the same time, one statement at a time, in every order there is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from collector.mongo.client import Database


@dataclass(frozen=True)
class Order:
    """Who takes each step, for as long as it has steps to take."""

    steps: tuple[int, ...]
    taken: list[tuple[int, ...]] = field(default_factory=list, compare=False, repr=False)
    """The steps that were really taken, by orders before and by this one."""

    def is_repeated(self) -> bool:
        """Whether it differs from an order before in steps alone that nobody had to take."""
        return any(_leads_to(self.steps, trace) for trace in self.taken)


def orders(first: int, second: int) -> Iterator[Order]:
    """Every way to mix at most so many steps of actor 0 and of actor 1, each once."""
    taken: list[tuple[int, ...]] = []
    for places in combinations(range(first + second), first):
        steps = tuple(0 if place in places else 1 for place in range(first + second))
        order = Order(steps, taken)
        if not order.is_repeated():
            yield order


def _leads_to(steps: tuple[int, ...], trace: tuple[int, ...]) -> bool:
    left = list(trace)
    for who in steps:
        if who in left:
            if left.pop(0) != who:
                return False
        elif not left:
            break
    return left == sorted(left)  # What is left is taken by the first one and then by the second.


class _Actor:
    """Stops before each statement until it is told to go on."""

    def __init__(self, database: Database, act: Callable[[Any], Awaitable[Any]]) -> None:
        self._stopped = asyncio.Event()
        self._go_on = asyncio.Event()
        self.task = asyncio.ensure_future(act(_Stepped(database, self._before_statement)))
        self.task.add_done_callback(lambda _: self._stopped.set())

    async def _before_statement(self) -> None:
        self._stopped.set()
        await self._go_on.wait()
        self._go_on.clear()

    async def step(self) -> bool:
        """One statement, and whatever follows until the next one or the end; False after it."""
        await self._stopped.wait()
        if self.task.done():
            return False
        self._stopped.clear()
        self._go_on.set()
        await self._stopped.wait()
        return True


class _Stepped:
    """The database with a stop before each statement."""

    def __init__(self, real: Any, stop: Callable[[], Awaitable[None]]) -> None:
        self._real = real
        self._stop = stop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name in ("jobs", "connectors", "system"):
            return _Stepped(found, self._stop)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def statement(*args: Any, **options: Any) -> Any:
            await self._stop()
            return await found(*args, **options)

        return statement


async def interleaved(
    database: Database,
    order: Order,
    *acts: Callable[[Any], Awaitable[Any]],
) -> list[Any]:
    """Lets the acts take steps in this order, then to their ends; what each returned or raised."""
    actors = [_Actor(database, act) for act in acts]
    trace = [who for who in order.steps if await actors[who].step()]
    for who, actor in enumerate(actors):
        while await actor.step():
            trace.append(who)
    order.taken.append(tuple(trace))
    return await asyncio.gather(*(actor.task for actor in actors), return_exceptions=True)
