"""What one call of the adapter sends and hears.

A *visit* is one call of an adapter's method, an *errand* one request of it. ccxt makes requests
from inside its own methods, several at a time when it likes, so both travel in context variables:
whatever task a request is made in, it knows whose errand it is. That is what lets a request be
weighed before it leaves, lets its answer be looked at before ccxt has interpreted it, and makes
sure that nothing of a visit goes on after it.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.exchanges.port import Answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from collector.errors import RetryLater
    from collector.exchanges.port import Call, Health


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came. Header names are in lower case; `body` is empty until it is read."""

    status: int
    headers: Mapping[str, str]
    body: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """The permit's yes: when it came, and until when it holds, on our monotonic clock."""

    at: float
    until: float


@dataclass(slots=True)
class Errand:
    """One request on its way, filled in as things happen to it."""

    call: Call
    ask: Callable[[], Awaitable[Grant]]
    """Asks the permit."""
    grant: Grant | None = None
    announced: bool = False
    left: bool = False
    reply: Reply | None = None
    json: Any = None

    def announce(self) -> None:
        """ccxt is about to send it: its throttle was passed."""
        self.announced = True

    def leave(self) -> bool:
        """Whether this is the one request that may leave. A second one may not."""
        may_leave = self.announced and not self.left
        self.left = True
        return may_leave

    async def buy(self) -> None:
        """Returns when the permit has said yes: the request leaves now."""
        self.grant = None
        self.grant = await self.ask()

    async def be_punctual(self, moment: float) -> None:
        """Buys again when the request, about to leave at last, would be late."""
        if self.grant is not None and moment > self.grant.until:
            await self.buy()

    def forget(self) -> None:
        """Lets go of the answer. A connection keeps the context it was opened in, and so this."""
        self.reply = None
        self.json = None

    def answer(self, moment: float, health: Health) -> Answer:
        """What to tell the permit."""
        asked_at = moment if self.grant is None else self.grant.at
        return Answer(
            call=self.call,
            status=0 if self.reply is None else self.reply.status,
            headers={} if self.reply is None else self.reply.headers,
            seconds=moment - asked_at,
            health=health,
        )


class VisitOver(Exception):
    """A task that ccxt left behind wanted to send a request after its visit had ended."""


@dataclass(slots=True, eq=False)
class Visit:
    """One call of the adapter: its errands, the tasks that run them, and what they brought."""

    denial: Exception | None = None
    """What the permit raised. ccxt swallows errors in places; this one must come out."""
    failure: RetryLater | None = None
    """A request that may succeed later. ccxt makes do without some; a list would lack a part."""
    last: Errand | None = None
    raw_rows: Any = None
    """The rows of bars or the trades as ccxt picked them out of the answer."""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _over: bool = False

    @contextmanager
    def running(self, errand: Errand) -> Iterator[None]:
        """Makes `errand` the one that the current task is on."""
        if self._over:
            raise VisitOver
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        token = _ERRAND.set(errand)
        try:
            yield
        finally:
            _ERRAND.reset(token)
            if self.last is not None:
                self.last.forget()
            self.last = errand

    async def end(self) -> None:
        """Stops what ccxt left running: after the first failure of several it waits for none."""
        self._over = True
        left = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if self.last is not None:
            self.last.forget()
        self.raw_rows = None


_VISIT: ContextVar[Visit] = ContextVar("collector_ccxt_visit")
_ERRAND: ContextVar[Errand] = ContextVar("collector_ccxt_errand")


def current_visit() -> Visit:
    """The visit this request belongs to. There is none outside the adapter's methods."""
    visit = _VISIT.get(None)
    if visit is None:
        raise RuntimeError("ccxt may only be asked through the adapter's own methods")
    return visit


def current_errand() -> Errand | None:
    return _ERRAND.get(None)


@contextmanager
def entered(visit: Visit) -> Iterator[None]:
    """Makes `visit` the current one, for this task and those it starts."""
    token = _VISIT.set(visit)
    try:
        yield
    finally:
        _VISIT.reset(token)
