"""The jobs that a worker has in hand, and the leases under them.

It also notices that a job was paused or deleted: at once when the change stream reports it, and
with every renewal at the latest.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.errors import JobStopped
from collector.jobs.lease import Lease
from workers.lease_renewal import LeaseRenewal

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.clock import Clock
    from collector.jobs.leasing import Leasing
    from workers.job_run import JobRun

_log = logs.get("workers.renewal")


@dataclass(slots=True)
class HeldJob:
    """A job in hand: its run, and the task to cancel when the lease is gone."""

    run: JobRun
    task: asyncio.Task[None]


class Renewal(LeaseRenewal[Lease]):
    """Every lease this worker holds, renewed together in one statement."""

    def __init__(self, leasing: Leasing, clock: Clock) -> None:
        super().__init__(leasing, clock, "renewal")
        self._leasing = leasing
        self._held: dict[ObjectId, HeldJob] = {}
        self._gone = asyncio.Event()
        self._changed: set[ObjectId] = set()
        self._look = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, job_id: ObjectId) -> bool:
        return job_id in self._held

    @property
    def job_ids(self) -> list[ObjectId]:
        return list(self._held)

    @property
    def runs(self) -> set[JobRun]:
        return {held.run for held in self._held.values()}

    @property
    def by_exchange(self) -> Counter[str]:
        """How many jobs of each exchange are in hand."""
        return Counter(held.run.job.exchange_id for held in self._held.values())

    def hold(self, run: JobRun, task: asyncio.Task[None]) -> None:
        self._held[run.job.id] = HeldJob(run, task)

    def release(self, run: JobRun) -> None:
        """Forgets the run, unless the job is already in hand again under a newer lease."""
        held = self._held.get(run.job.id)
        if held is not None and held.run is run:
            del self._held[run.job.id]
        self._gone.set()

    async def one_has_gone(self) -> None:
        """Returns when a run is released after this call."""
        self._gone.clear()
        await self._gone.wait()

    def drain(self) -> None:
        """Every run in hand finishes its step and begins no other."""
        for run in self.runs:
            run.drain()

    def put_down(self, exchange_id: str) -> None:
        """Every run of an exchange finishes its step and goes back to the queue."""
        for run in self.runs:
            if run.job.exchange_id == exchange_id:
                run.drain()

    def job_changed(self, job_id: ObjectId) -> None:
        """A job was changed; when this worker runs it, it may have been stopped."""
        if job_id in self._held:
            self._changed.add(job_id)
            self._look.set()

    def leases(self) -> list[Lease]:
        return [held.run.lease for held in self._held.values() if not held.run.lost]

    def replace(self, lease: Lease) -> None:
        held = self._held.get(lease.job_id)
        if held is not None and held.run.lease.fence == lease.fence:
            held.run.lease = lease

    def drop(self, lease: Lease, why: str) -> None:
        held = self._held.get(lease.job_id)
        if held is None or held.run.lease.fence != lease.fence or held.run.lost:
            return  # It ended while the renewal was under way.
        if held.run.settling:
            return  # Our own settlement may have ended it already; its answer will show.
        note_lost(held.run, why)
        held.task.cancel()

    async def pause(self, seconds: float) -> None:
        """Until the next look, or until a job in hand was changed."""
        try:
            async with asyncio.timeout(seconds):
                await self._look.wait()
        except TimeoutError:
            return
        finally:
            self._look.clear()

    async def looked(self, *, renewed: bool) -> None:
        """Stops the runs of jobs that were paused or deleted."""
        changed, self._changed = self._changed, set()
        if renewed:
            changed = set(self._held)
        if not changed:
            return
        for job_id in await self._leasing.stopped(changed):
            held = self._held.get(job_id)
            if held is not None:
                held.run.halt(JobStopped(f"job {job_id} was paused or deleted"))


def note_lost(run: JobRun, why: str) -> None:
    """One line and one count for every lost lease, whichever check notices it first."""
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
