"""One run of one job: what a handler may do, and nothing more."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from collector import logs, metrics
from collector.connectors.caller import Caller
from collector.errors import DatabaseUnavailable, JobStopped, LeaseLost
from collector.jobs.cursor import Cursor
from workers.tries import PASSING, Tries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from collector.clock import Clock
    from collector.connectors.limiter import Limiter
    from collector.jobs.cursor import CursorShape
    from collector.jobs.job import Job
    from collector.jobs.lease import Lease
    from collector.jobs.leasing import Leasing

T = TypeVar("T")

OUTAGE_RETRY_SECONDS = 0.2

_log = logs.get("workers")


class JobRun:
    """A leased job in a handler's hands."""

    def __init__(
        self,
        lease: Lease,
        leasing: Leasing,
        limiter: Limiter,
        *,
        clock: Clock,
        patience: float,
        tries: Tries | None = None,
    ) -> None:
        self.lease = lease
        self.cursor: Cursor = lease.job.cursor
        self.progress: Mapping[str, Any] = lease.job.document.get("progress") or {}
        self.caller = Caller(str(lease.job.id), lease.job.asks_with_priority, lease.job.priority)
        self.pages = 0
        self.bars = 0
        self.came_further = asyncio.Event()
        """Set when anything was committed, whatever becomes of the run."""
        self.draining = False
        self.lost = False
        self.settling = False
        self._leasing = leasing
        self._limiter = limiter
        self._clock = clock
        self._patience = patience
        self._tries = tries or Tries()
        self._halted: Exception | None = None
        self._halting = asyncio.Event()

    @property
    def job(self) -> Job:
        return self.lease.job

    @property
    def fence(self) -> int:
        return self.lease.fence

    @property
    def tokens(self) -> int:
        """What the run has spent so far."""
        return self.caller.tokens

    @property
    def halted(self) -> bool:
        """Whether no further step may begin."""
        return self._halting.is_set()

    @property
    def budget_is_spent(self) -> bool:
        """Whether requests have to wait for tokens, as far as this process knows."""
        return self._limiter.exhausted_until(self.job.exchange_id) > self._clock.monotonic()

    def halt(self, error: Exception) -> None:
        """No further step begins: `check` raises `error`, the first one given, from now on."""
        self._halted = self._halted or error
        self._halting.set()

    def drain(self) -> None:
        """The worker is leaving: finish the step in hand, begin no other."""
        self.draining = True
        self.halt(JobStopped("the worker is draining"))

    async def token(self, *, weight: int = 1) -> None:
        """Buys the right to send one request now. Raises RateLimited, or JobStopped on drain."""
        self.check()
        await self._limiter.acquire(
            self.job.exchange_id,
            weight=weight,
            priority=self.caller.priority,
            urgency=self.caller.urgency,
            patience=self._patience,
        )
        self.caller.tokens += 1
        # Waiting may have taken long enough for someone else to hold the job.
        self.check()

    def check(self) -> None:
        """Raises when no further step may begin."""
        if not self.lease.trusted(self._clock.monotonic()):
            raise LeaseLost(f"job {self.job.id}: the lease was not renewed in time")
        if self._halted is not None:
            raise self._halted

    async def tried(self, step: Callable[[], Awaitable[T]], *, begun: bool = False) -> T:
        """What the step returns. After a passing fault it is tried again, a few times in all.

        The pauses are short and end when the run is halted. A spent budget, a ban and everything
        that does not pass by itself come out at once. The end of a page that has `begun`, its
        writing, is tried in a halted run as well: its token is spent.
        """
        for failures in count(1):
            if not begun:
                self.check()
            try:
                return await step()
            except PASSING as error:
                pause = self._tries.pause(error, failures, random.random())
                if pause is None:
                    raise
                metrics.PAGES_RETRIED.labels(self.job.exchange_id).inc()
                _log.debug("page_retried", error=str(error), failures=failures)
            await self.rest(pause)
        raise AssertionError("unreachable")

    async def look(self) -> None:
        """Raises when the job was stopped, even if no change stream has reported it.

        For a run without an end, which has to notice within a second.
        """
        self.check()
        with suppress(DatabaseUnavailable):  # The lease limits how long that may last.
            if await self._leasing.stopped([self.job.id]):
                self.halt(JobStopped(f"job {self.job.id} was paused or deleted"))
        self.check()

    async def rest(self, seconds: float) -> None:
        """Waits, but not longer than until the run is halted."""
        try:
            async with asyncio.timeout(seconds):
                await self._halting.wait()
        except TimeoutError:
            return

    async def commit(
        self,
        cursor: CursorShape,
        *,
        pages: int = 0,
        bars: int = 0,
        progress: Mapping[str, Any] | None = None,
    ) -> None:
        """Moves the cursor over work that is durable.

        Goes on trying through an outage as long as the lease can be trusted: the same cursor
        written twice is the same cursor.
        """
        while True:
            try:
                await self._leasing.commit(self.lease, cursor, progress)
                break
            except JobStopped:
                self.count(cursor, pages=pages, bars=bars)
                raise
            except DatabaseUnavailable as error:
                if not self.lease.trusted(self._clock.monotonic()):
                    raise LeaseLost(f"job {self.job.id}: {error}") from error
                await asyncio.sleep(OUTAGE_RETRY_SECONDS)
        self.came_further.set()
        self.count(cursor, pages=pages, bars=bars)
        self.progress = self.progress if progress is None else progress

    def count(self, cursor: CursorShape, *, pages: int, bars: int) -> None:
        """Notes what was done; for a handler whose cursor is written with its finish."""
        if isinstance(cursor, Cursor):
            self.cursor = cursor
        self.pages += pages
        self.bars += bars
