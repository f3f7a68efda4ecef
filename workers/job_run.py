"""One run of one job: what a handler may do, and nothing more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from collector.errors import DatabaseUnavailable, JobStopped, LeaseLost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.connectors.limiter import Limiter
    from collector.jobs.job import Cursor, Job
    from collector.jobs.lease import Lease
    from collector.jobs.leasing import Leasing

OUTAGE_RETRY_SECONDS = 0.2


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
        draining: asyncio.Event,
    ) -> None:
        self.lease = lease
        self.cursor: Cursor = lease.job.cursor
        self.progress: Mapping[str, Any] = lease.job.document.get("progress") or {}
        self.pages = 0
        self.bars = 0
        self.tokens = 0
        self.lost = False
        self.settling = False
        self._leasing = leasing
        self._limiter = limiter
        self._clock = clock
        self._patience = patience
        self._draining = draining

    @property
    def job(self) -> Job:
        return self.lease.job

    @property
    def fence(self) -> int:
        return self.lease.fence

    @property
    def stopping(self) -> bool:
        """Whether the worker is draining: finish the step in hand, begin no other."""
        return self._draining.is_set()

    async def token(self, *, weight: int = 1, priority: bool = False) -> None:
        """Buys the right to send one request now. Raises RateLimited, or JobStopped on drain."""
        self.check()
        await self._limiter.acquire(
            self.job.exchange_id, weight=weight, priority=priority, patience=self._patience
        )
        self.tokens += 1
        # Waiting may have taken long enough for someone else to hold the job.
        self.check()

    def check(self) -> None:
        """Raises when no further step may begin."""
        if not self.lease.trusted(self._clock.monotonic()):
            raise LeaseLost(f"job {self.job.id}: the lease was not renewed in time")
        if self.stopping:
            raise JobStopped("the worker is draining")

    async def commit(
        self,
        cursor: Cursor,
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
        self.count(cursor, pages=pages, bars=bars)
        self.progress = self.progress if progress is None else progress

    def count(self, cursor: Cursor, *, pages: int, bars: int) -> None:
        """Notes what was done; for a handler whose cursor is written with its finish."""
        self.cursor = cursor
        self.pages += pages
        self.bars += bars
