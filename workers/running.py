"""One run from the handler's first step to the job's settlement, and its line in the history."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog

from collector import logs
from collector.connectors.caller import on_behalf_of
from collector.errors import JobStopped, LeaseLost, StopWork
from collector.jobs import settlement
from collector.jobs.runs import Run, RunHistory
from collector.jobs.schedule import Once
from workers.duty import Duty
from workers.handlers.registry import Done, HandlerRegistry, Later
from workers.job_run import OUTAGE_RETRY_SECONDS, JobRun
from workers.renewal import note_lost

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.jobs.leasing import Leasing
    from collector.jobs.settlement import Settlement
    from collector.mongo.server_clock import ServerClock
    from workers.cadences import Cadences
    from workers.reactions import Reactions

_log = logs.get("workers")


class Running:
    """Runs jobs of one worker."""

    def __init__(
        self,
        handlers: HandlerRegistry,
        leasing: Leasing,
        history: RunHistory,
        reactions: Reactions,
        server_clock: ServerClock,
        clock: Clock,
        cadences: Cadences,
    ) -> None:
        self._cadences = cadences
        self._handlers = handlers
        self._leasing = leasing
        self._history = history
        self._reactions = reactions
        self._server_clock = server_clock
        self._clock = clock

    async def run(self, run: JobRun) -> None:
        """Returns when the job is settled, or another worker has it."""
        job = run.job
        structlog.contextvars.bind_contextvars(
            job=str(job.id), exchange=job.exchange_id, symbol=job.symbol, fence=run.fence
        )
        started_ms = self._server_clock.now_ms()
        try:
            with on_behalf_of(run.caller):
                end = await self._end_of(run)
            if end is not None and await self._settle(run, end):
                self._record(run, end, started_ms)
        except asyncio.CancelledError:
            # Renewal cancels a run whose lease is gone; anyone else's cancellation goes on.
            if not run.lost:
                raise

    async def end(self, run: JobRun, error: Exception) -> None:
        """Settles a run that broke off outside of its handler, as if the handler had failed."""
        _log.warning("run_broke_off", kind=type(error).__name__, error=str(error)[:300])
        await self._settle(run, self._reaction_to(error, run))

    async def _end_of(self, run: JobRun) -> Settlement | None:
        """Runs the handler and reads its end. None: another worker has the job."""
        try:
            outcome = await self._handlers.find(run.job.type)(run)
            job = await self._cadences.applied(run.job)
        except LeaseLost as error:
            note_lost(run, str(error))
            return None
        except JobStopped:
            return settlement.give_back() if run.draining else settlement.put_down()
        except StopWork:
            return settlement.put_down()
        except Exception as error:  # noqa: BLE001 - a defect in one handler is one job's fault
            return self._reaction_to(error, run)
        cursor, progress = outcome.cursor, outcome.progress
        if isinstance(outcome, Later):
            return settlement.later(outcome.after_ms, outcome.cursor, outcome.progress)
        if isinstance(outcome, Done):
            return settlement.done(vanish=outcome.vanish, cursor=cursor, progress=progress)
        if isinstance(run.job.schedule, Once):
            return settlement.done(cursor=cursor, progress=progress)
        now_ms, spread = self._server_clock.now_ms(), random.random()
        return settlement.again(job, now_ms, spread, cursor=cursor, progress=progress)

    def _reaction_to(self, error: Exception, run: JobRun) -> Settlement:
        end = self._reactions.to(
            error,
            run.job,
            moved=run.came_further.is_set(),
            now_ms=self._server_clock.now_ms(),
            spread=random.random(),
        )
        _log_end(end, error)
        return end

    async def _settle(self, run: JobRun, end: Settlement) -> bool:
        """Writes the end, through an outage as long as the lease can be trusted.

        False: another worker has the job by now, and the result of this run is void.
        """
        run.settling = True
        duty = Duty("settling")
        while True:
            with duty.tolerated():
                try:
                    await self._leasing.settle(run.lease, end)
                except LeaseLost as error:
                    note_lost(run, str(error))
                    return False
                return True
            if not run.lease.trusted(self._clock.monotonic()):
                note_lost(run, "MongoDB was away for longer than the lease")
                return False
            await asyncio.sleep(OUTAGE_RETRY_SECONDS)

    def _record(self, run: JobRun, end: Settlement, started_ms: int) -> None:
        self._history.record(
            Run(
                job=run.job,
                worker_id=self._leasing.worker_id,
                fence=run.fence,
                started_ms=started_ms,
                ended_ms=self._server_clock.now_ms(),
                outcome=end.transition.name,
                pages=run.pages,
                bars=run.bars,
                tokens=run.tokens,
                error=end.error,
            )
        )


def _log_end(end: Settlement, error: Exception) -> None:
    """A wait for tokens is everyday, a retry is worth knowing, a failure needs a person."""
    if end.transition.name == "wait":
        _log.debug("run_waits", reason=end.waiting_for)
    elif end.transition.name == "retry":
        _log.info("run_retries", error=end.error, kind=type(error).__name__)
    else:
        _log.warning("job_failed", error=end.error)
