"""A suspect runs alone before it is condemned.

A job whose worker died several times may be the one that kills, or may only have shared a process
with it. So a suspect gets a worker to itself: the worker claims nothing, its other jobs put down
their step and go back to the queue, and then the suspect runs. When the worker dies now, the job
did it. Once the suspect has come further it is a suspect no more, and the others may come back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from collector import logs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.jobs.leasing import Leasing
    from workers.job_run import JobRun
    from workers.renewal import Renewal

_log = logs.get("workers")


class Alone:
    """Gives a worker to one suspect at a time."""

    def __init__(self, leasing: Leasing, renewal: Renewal) -> None:
        self._leasing = leasing
        self._renewal = renewal
        self._turn = asyncio.Lock()
        self._suspects: set[JobRun] = set()

    @property
    def wanted(self) -> bool:
        """Whether a suspect has the worker, or waits for it: nothing else may be claimed."""
        return any(not suspect.came_further.is_set() for suspect in self._suspects)

    def expect(self, run: JobRun) -> None:
        """From the moment a suspect is claimed: its task begins later, the next claim may not."""
        self._suspects.add(run)

    async def run(self, run: JobRun, work: Callable[[JobRun], Awaitable[None]]) -> None:
        """Waits until the worker has nothing else in hand, then does the suspect's work."""
        try:
            async with self._turn:
                await self._empty_handed()
                await self._leasing.mark_alone(run.lease)
                _log.warning("job_runs_alone", job=str(run.job.id), kills=run.lease.kills)
                working = asyncio.ensure_future(work(run))
                await _until(working, run.came_further)
            await working
        finally:
            self._suspects.discard(run)

    async def _empty_handed(self) -> None:
        while others := self._renewal.runs - self._suspects:
            for other in others:
                other.drain()
            await self._renewal.one_has_gone()


async def _until(working: asyncio.Future[None], event: asyncio.Event) -> None:
    """Until the work has ended or the event is set; a cancellation goes to the work."""
    noticed = asyncio.ensure_future(event.wait())
    either: list[asyncio.Future[Any]] = [working, noticed]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        raise
    finally:
        noticed.cancel()
