"""Keeps a worker's leases alive, apart from what the jobs themselves are doing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.clock import Clock
    from collector.jobs.lease import Lease
    from collector.jobs.leasing import Leasing
    from workers.job_run import JobRun

_log = logs.get("workers.renewal")
_LOOK_EVERY_SHARE = 10  # how many times within a trust window to look at the clock


@dataclass(slots=True)
class Held:
    """A job in hand: its run, and the task to cancel when the lease is gone."""

    run: JobRun
    task: asyncio.Task[None]


class Renewal:
    """Every lease this worker holds, renewed together in one statement."""

    def __init__(self, leasing: Leasing, clock: Clock) -> None:
        self._leasing = leasing
        self._clock = clock
        self._held: dict[ObjectId, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, job_id: ObjectId) -> bool:
        return job_id in self._held

    @property
    def job_ids(self) -> list[ObjectId]:
        return list(self._held)

    def hold(self, run: JobRun, task: asyncio.Task[None]) -> None:
        self._held[run.job.id] = Held(run, task)

    def release(self, run: JobRun) -> None:
        """Forgets the run, unless the job is already in hand again under a newer lease."""
        held = self._held.get(run.job.id)
        if held is not None and held.run is run:
            del self._held[run.job.id]

    async def keep_renewing(self) -> None:
        """Until cancelled: renews every third of the TTL and drops what cannot be trusted."""
        terms = self._leasing.terms
        look_every = min(terms.renew_every, terms.trust_seconds / _LOOK_EVERY_SHARE)
        next_renewal = self._clock.monotonic() + terms.renew_every
        while True:
            await asyncio.sleep(look_every)
            self._drop_untrusted()
            if self._clock.monotonic() >= next_renewal:
                next_renewal = self._clock.monotonic() + terms.renew_every
                await self._renew()

    async def _renew(self) -> None:
        leases = [held.run.lease for held in self._held.values() if not held.run.lost]
        try:
            # A renewal that hangs must not keep us from looking at the clock.
            async with asyncio.timeout(self._leasing.terms.renew_every):
                renewed, lost = await self._leasing.renew(leases)
        except (DatabaseUnavailable, TimeoutError):
            return
        for job_id, lease in renewed.items():
            held = self._held.get(job_id)
            if held is not None and held.run.lease.fence == lease.fence:
                held.run.lease = lease
        for lease in lost:
            self._drop(lease, "another worker holds the job")

    def _drop_untrusted(self) -> None:
        now = self._clock.monotonic()
        for held in list(self._held.values()):
            if not held.run.lease.trusted(now):
                self._drop(held.run.lease, "it could not be renewed in time")

    def _drop(self, lease: Lease, why: str) -> None:
        held = self._held.get(lease.job_id)
        if held is None or held.run.lease.fence != lease.fence or held.run.lost:
            return  # It ended while the renewal was under way.
        if held.run.settling:
            return  # It may be at rest already, by our own hand; the settlement will tell.
        note_lost(held.run, why)
        held.task.cancel()


def note_lost(run: JobRun, why: str) -> None:
    """One line and one count for every lease that was lost, whoever notices first."""
    if run.lost:
        return
    run.lost = True
    lease = run.lease
    metrics.LEASE_LOST.inc()
    _log.warning(
        "lease_lost",
        job=str(lease.job_id),
        exchange=lease.job.exchange_id,
        symbol=lease.job.symbol,
        fence=lease.fence,
        why=why,
    )
