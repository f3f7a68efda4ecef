"""What one call of the adapter sends and receives.

A *visit* is one call of an adapter's method, an *errand* one request of it. ccxt makes requests
from inside its own methods, sometimes several at a time, so both travel in context variables, and a
request in any task knows its errand. So a request can be weighed before it leaves, its answer can
be read before ccxt has interpreted it, and nothing of a visit continues after it.

The permit receives the outcome of each request, exactly once, even if the caller is cancelled. An
answer that ccxt accepts may still be broken. Where the adapter judges the rows of an answer itself,
the permit receives the outcome after that judgement, so the circuit never counts an answer as good
that is refused right after.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.port import Answer
from collector.exchanges.reporting import report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from collector.clock import Clock
    from collector.errors import RetryLater
    from collector.exchanges.port import Call, Health, Permit


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came. Header names are in lower case; `body` is empty until it is read."""

    status: int
    headers: Mapping[str, str]
    body: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """The permit's approval: when it came, and until when it holds, on our monotonic clock."""

    at: float
    until: float


@dataclass(slots=True, eq=False)
class Errand:
    """One request under way, filled in as it proceeds."""

    call: Call
    ask: Callable[[], Awaitable[Grant]]
    """Calls the permit."""
    grant: Grant | None = None
    announced: bool = False
    left: bool = False
    reply: Reply | None = None
    arrived_at: float | None = None
    """When the first bytes of the answer were here, on our monotonic clock."""
    ended_at: float | None = None
    """When all of it was here and ccxt accepted it."""
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
        """Returns when the permit has approved: the request leaves now."""
        self.grant = self.arrived_at = None
        self.grant = await self.ask()

    async def be_punctual(self, moment: float) -> None:
        """Buys another token when the request would leave late."""
        if self.grant is not None and moment > self.grant.until:
            await self.buy()

    def forget(self) -> None:
        """Drops the answer: a connection keeps the context it was opened in, and so this object."""
        self.reply = None
        self.json = None

    def answer(self, moment: float, health: Health) -> Answer:
        """What to report to the permit."""
        asked_at = moment if self.grant is None else self.grant.at
        return Answer(
            call=self.call,
            outcome="none" if self.reply is None else f"{self.reply.status // 100}xx",
            seconds=moment - asked_at,
            headers={} if self.reply is None else self.reply.headers,
            health=health,
        )


class VisitOver(Exception):
    """A task that ccxt left behind wanted to send a request after its visit had ended."""


@dataclass(slots=True, eq=False)
class Visit:
    """One call of the adapter: its errands, the tasks that run them, and what they brought."""

    judging: bool = False
    """Whether the last answer is judged again when ccxt has read it: its outcome waits for that."""
    denial: Exception | None = None
    """What the permit raised. ccxt swallows some errors; this one must be raised."""
    failure: RetryLater | None = None
    """A request that may succeed later. ccxt continues without some; a list would lack a part."""
    page_size: int | None = None
    """The requested number of rows, for requests that do not name it."""
    last: Errand | None = None
    unjudged: list[Errand] = field(default_factory=list)
    """Requests that ccxt accepted and whose outcome the permit has not received yet."""
    raw_rows: Any = None
    """The rows of bars or the trades as ccxt picked them out of the answer."""
    raw_columns: Any = None
    """The same for bars that come by columns."""
    wants_bars: bool = False
    """Whether the answer is a page of bars, whose numbers may be read in one go."""
    unread: Any = None
    """What replaces a page in the answer that ccxt was given (unread.py)."""
    parsed: Any = None
    """What was made of the rows, as it was given to ccxt."""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _over: bool = False

    @contextmanager
    def running(self, errand: Errand) -> Iterator[None]:
        """Makes `errand` the one that the current task works on."""
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
            if self.last is not None and self.last not in self.unjudged:
                self.last.forget()
            self.last = errand

    async def end(self) -> None:
        """Stops what ccxt left running: after the first failure it does not wait for the others."""
        self._over = True
        left = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)

    def forget(self) -> None:
        """Drops all that it brought: connections, and their timers in the event loop, keep the
        context that they were opened in, and so this object.
        """
        if self.last is not None:
            self.last.forget()
        self.last = self.failure = self.denial = None
        self.raw_rows = self.raw_columns = self.unread = self.parsed = None
        self._tasks.clear()


_VISIT: ContextVar[Visit] = ContextVar("collector_ccxt_visit")
_ERRAND: ContextVar[Errand] = ContextVar("collector_ccxt_errand")


def current_visit() -> Visit:
    """The visit this request belongs to. There is none outside the adapter's methods."""
    visit = _VISIT.get(None)
    if visit is None:
        raise RuntimeError("ccxt may only be called through the adapter's own methods")
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


@dataclass(frozen=True, slots=True)
class OutcomeReports:
    """Reports to one permit."""

    permit: Permit
    clock: Clock

    async def answered(self, visit: Visit, errand: Errand) -> None:
        """ccxt accepted the answer. A visit that judges it reports later."""
        errand.ended_at = self.clock.monotonic()
        if visit.judging:
            visit.unjudged.append(errand)
        else:
            await self._report(errand, "good")

    async def judged(self, visit: Visit, failure: BaseException | None = None) -> None:
        """Reports the answers that were still to be judged.

        Those that another request followed were good. `failure` is about the last one: what was
        found in it, or the cancellation of its judgement.
        """
        while visit.unjudged:
            errand = visit.unjudged.pop(0)
            if failure is None or visit.unjudged:
                await self._report(errand, "good")
            else:
                await self.failed(errand, failure)
            errand.forget()

    async def failed(self, errand: Errand, failure: BaseException) -> None:
        """`failure` is one of Collector's errors, or a cancellation, which proves nothing."""
        if isinstance(failure, Exception):
            failed = isinstance(failure, ExchangeUnavailable)
            await self._report(errand, "bad" if failed else "unknown", error=failure)
            return
        # The cancellation has to be raised, whatever the permit does with the report.
        with suppress(Exception):
            await self._report(errand, "unknown", given_up=errand.arrived_at is None)

    async def _report(
        self,
        errand: Errand,
        health: Health,
        *,
        error: Exception | None = None,
        given_up: bool = False,
    ) -> None:
        """Reports to the permit what was sent."""
        if errand.grant is None:
            return
        now = errand.ended_at or self.clock.monotonic()
        # A time-out and a broken connection are answers, too: what was sent has arrived by now.
        arrived_at = None if given_up else (errand.arrived_at or now)
        answer = replace(
            errand.answer(now, health),
            error=error,
            arrived_at=arrived_at,
            is_timed=errand.arrived_at is not None,
        )
        await report(self.permit, answer)
