"""A worker: claims due jobs, runs their handlers, settles what came of each.

The order of its life: open exchanges in turn, take only what can start now, run each job as a task
of its own, and write the outcome behind the fence. `drain` ends it softly: no new claims, every
job finishes the step in hand and goes back to the queue with its attempt returned.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from collector import logs, metrics
from collector.backoff import Backoff
from collector.clock import Clock, SystemClock
from collector.errors import DatabaseUnavailable, JobStopped, LeaseLost, StopWork
from collector.jobs import settlement
from collector.jobs.leasing import Leasing
from collector.jobs.runs import Run, RunHistory
from collector.mongo.client import OUTAGE
from workers.exchanges_open import OpenExchanges
from workers.handlers.registry import Done, HandlerRegistry
from workers.job_run import OUTAGE_RETRY_SECONDS, JobRun
from workers.maintenance import Maintenance
from workers.reactions import react
from workers.renewal import Renewal, note_lost
from workers.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.connector import Connector
    from collector.connectors.limiter import Limiter
    from collector.jobs.lease import Lease, LeaseTerms
    from collector.jobs.settlement import Settlement
    from collector.mongo.client import Database

_log = logs.get("workers")
CLOCK_SLACK_MS = 20
"""How far our idea of the server's clock may be off within one claim round."""
EARLY_SECONDS = 0.1
"""Jobs that wait for tokens are leased this much before the tokens are there: claiming them and
starting their requests would otherwise come out of every window of the budget."""
JOB_RETRY = Backoff(base_seconds=5.0, max_seconds=600.0)


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker is told."""

    worker_id: str
    concurrency: int = 100
    exchanges: Sequence[str] = ()
    poll_seconds: float = 2.0
    patience: float = 1.5
    retry: Backoff = field(default=JOB_RETRY)
    until_idle: bool = False
    """Stop by itself once nothing is due and nothing runs."""

    @property
    def early_seconds(self) -> float:
        """A job that comes early waits for its token, which takes patience."""
        return min(EARLY_SECONDS, self.patience / 2)


class Worker:
    """One worker process's worth of work."""

    def __init__(
        self,
        database: Database,
        limiter: Limiter,
        handlers: HandlerRegistry,
        config: WorkerConfig,
        *,
        terms: LeaseTerms | None = None,
        clock: Clock | None = None,
        metrics_address: str | None = None,
    ) -> None:
        self._database = database
        self._limiter = limiter
        self._handlers = handlers
        self._config = config
        self._clock = clock or SystemClock()
        self._leasing = Leasing(database, config.worker_id, terms=terms, clock=self._clock)
        self._renewal = Renewal(self._leasing, self._clock)
        self._wakeup = Wakeup(database, poll_seconds=config.poll_seconds)
        self._open = OpenExchanges(
            database,
            limiter,
            self._clock,
            only=config.exchanges,
            early_seconds=config.early_seconds,
        )
        self._history = RunHistory(database)
        self._maintenance = Maintenance(
            database, config.worker_id, config.concurrency, metrics_address
        )
        self._draining = asyncio.Event()
        self._claim_in_doubt = False

    def drain(self) -> None:
        """No more claims; `run` returns when every job in hand has put down its step."""
        self._draining.set()
        self._wakeup.ring()

    async def run(self) -> None:
        """Works until drained. The database must have been reached before."""
        async with asyncio.TaskGroup() as group:
            duties = [
                group.create_task(self._renewal.keep_renewing()),
                group.create_task(self._wakeup.keep_watching()),
                group.create_task(self._history.keep_flushing()),
                group.create_task(self._maintenance.keep_going()),
            ]
            async with asyncio.TaskGroup() as jobs:
                await self._claim_until_drained(jobs)
            # Leases are renewed until the last job has been settled, then the duties end.
            for duty in duties:
                duty.cancel()
        await self._history.flush()
        await self._maintenance.say_goodbye()

    # -- claiming -----------------------------------------------------------------------------

    async def _claim_until_drained(self, jobs: asyncio.TaskGroup) -> None:
        failures = 0
        while not self._draining.is_set():
            try:
                due_in = await self._claim_round(jobs)
                failures = 0
            except DatabaseUnavailable:
                failures += 1
                self._claim_in_doubt = True
                due_in = OUTAGE.delay(failures, random.random())
            if due_in != 0:
                await self._wakeup.wait(due_in)

    async def _claim_round(self, jobs: asyncio.TaskGroup) -> float | None:
        """Claims once around. Returns how long nothing will be due: 0 to go on at once."""
        changed, self._wakeup.connectors_changed = self._wakeup.connectors_changed, False
        await self._open.refresh(now=changed)
        if self._claim_in_doubt:
            await self._hand_back_forgotten()
        exchanges, opens_in = self._open.in_turn()
        looked_at = self._database.server_clock.now_ms() - CLOCK_SLACK_MS
        claimed = 0
        for position, connector in enumerate(exchanges):
            free = self._config.concurrency - len(self._renewal)
            if free <= 0 or self._draining.is_set():
                break
            share = -(-free // (len(exchanges) - position))
            leases = await self._claim(connector, share)
            for lease in leases:
                self._start(jobs, lease)
            claimed += len(leases)
        if claimed:
            return 0
        if len(self._renewal) >= self._config.concurrency:
            return None  # A finishing job rings.
        due_in = await self._due_in([c.exchange_id for c in exchanges], looked_at)
        return min((wait for wait in (due_in, opens_in) if wait is not None), default=None)

    async def _claim(self, connector: Connector, wanted: int) -> list[Lease]:
        """Claims under the exchange's ceiling: claim, count live leases, give back the excess."""
        ceiling = connector.limits.max_concurrent_jobs
        if ceiling is None:
            return await self._leasing.claim(connector.exchange_id, wanted)
        room = ceiling - await self._leasing.live_leases(connector.exchange_id)
        if room <= 0:
            return []
        leases = await self._leasing.claim(connector.exchange_id, min(wanted, room))
        excess = await self._leasing.live_leases(connector.exchange_id) - ceiling
        # Whoever counts last sees everyone; at worst two workers both step back and try again.
        for lease in leases[: max(0, excess)]:
            await self._give_back(lease)
        return leases[max(0, excess) :]

    async def _due_in(self, exchange_ids: list[str], looked_at: int) -> float | None:
        """Seconds until the next job of the open exchanges is due. Nothing was due just now."""
        if await self._is_idle():
            self.drain()
        if not exchange_ids:
            return None
        due_ms = await self._leasing.next_due_ms(exchange_ids, looked_at)
        if due_ms is None:
            return None
        # Not 0: that would mean "claim again at once" although nothing was there.
        return max(0.001, (due_ms - self._database.server_clock.now_ms()) / 1000)

    async def _is_idle(self) -> bool:
        """Whether a worker that should stop by itself has nothing left to do."""
        if not self._config.until_idle or self._renewal:
            return False
        return not await self._leasing.pending(self._open.exchange_ids)

    async def _hand_back_forgotten(self) -> None:
        """After an outage: claims that happened although we never heard."""
        for lease in await self._leasing.forgotten(self._renewal.job_ids):
            await self._give_back(lease)
        await self._database.read_server_clock()
        self._claim_in_doubt = False

    async def _give_back(self, lease: Lease) -> None:
        with suppress(LeaseLost):  # Then somebody else has it, which is as good.
            await self._leasing.settle(lease, settlement.give_back())

    # -- running ------------------------------------------------------------------------------

    def _start(self, jobs: asyncio.TaskGroup, lease: Lease) -> None:
        if lease.rescued:
            metrics.JOBS_RESCUED.inc()
        run = JobRun(
            lease,
            self._leasing,
            self._limiter,
            clock=self._clock,
            patience=self._config.patience,
            draining=self._draining,
        )
        self._renewal.hold(run, jobs.create_task(self._run(run), name=f"job:{lease.job_id}"))

    async def _run(self, run: JobRun) -> None:
        job = run.job
        structlog.contextvars.bind_contextvars(
            job=str(job.id), exchange=job.exchange_id, symbol=job.symbol, fence=run.fence
        )
        started_ms = self._database.server_clock.now_ms()
        try:
            outcome = await self._settlement_of(run)
            if outcome is not None:
                await self._settle(run, outcome)
                self._record(run, outcome, started_ms)
        except asyncio.CancelledError:
            # Renewal cancels a run whose lease is gone; anyone else's cancellation goes on.
            if not run.lost:
                raise
        finally:
            self._renewal.release(run)
            self._wakeup.ring()

    async def _settlement_of(self, run: JobRun) -> Settlement | None:
        """Runs the handler and reads its end. None: the job is not ours to settle."""
        try:
            outcome = await self._handlers.find(run.job.type)(run)
        except LeaseLost as error:
            note_lost(run, str(error))
            return None
        except JobStopped:
            return settlement.give_back() if run.stopping else settlement.put_down()
        except StopWork:
            return settlement.put_down()
        except Exception as error:  # noqa: BLE001 - a defect in one handler is one job's fault
            early_ms = round(self._config.early_seconds * 1000)
            end = react(error, run.job, self._config.retry, random.random(), early_ms=early_ms)
            _say(end, error)
            return end
        if isinstance(outcome, Done):
            return settlement.done(vanish=outcome.vanish, cursor=outcome.cursor)
        now_ms = self._database.server_clock.now_ms()
        return settlement.again(run.job, now_ms, random.random(), cursor=outcome.cursor)

    async def _settle(self, run: JobRun, outcome: Settlement) -> None:
        """Writes the outcome, through an outage as long as the lease can be trusted."""
        run.settling = True
        while True:
            try:
                await self._leasing.settle(run.lease, outcome)
                return
            except LeaseLost as error:
                note_lost(run, str(error))
                return
            except DatabaseUnavailable:
                if not run.lease.trusted(self._clock.monotonic()):
                    note_lost(run, "MongoDB was away for longer than the lease")
                    return
                await asyncio.sleep(OUTAGE_RETRY_SECONDS)

    def _record(self, run: JobRun, outcome: Settlement, started_ms: int) -> None:
        self._history.record(
            Run(
                job=run.job,
                worker_id=self._config.worker_id,
                fence=run.fence,
                started_ms=started_ms,
                ended_ms=self._database.server_clock.now_ms(),
                outcome=outcome.transition.name,
                pages=run.pages,
                bars=run.bars,
                tokens=run.tokens,
                error=outcome.error,
            )
        )


def _say(end: Settlement, error: Exception) -> None:
    """A wait for tokens is everyday, a retry is worth knowing, a failure needs a person."""
    if end.transition.name == "wait":
        _log.debug("run_waits", reason=end.waiting_for)
    elif end.transition.name == "retry":
        _log.info("run_retries", error=end.error, kind=type(error).__name__)
    else:
        _log.warning("job_failed", error=end.error)
