"""A worker: claims due jobs, runs their handlers, and writes the outcome of each.

The order of its life: open exchanges in turn, take only what can start now (claiming.py), run each
job as a task of its own (running.py), and write the outcome behind the fence. `drain` ends it
softly: no new claims, every job finishes its current step and goes back to the queue with its
attempt returned.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector import metrics
from collector.clock import Clock, SystemClock
from collector.durations import DAY_MS
from collector.errors import LeaseLost
from collector.jobs.leasing import Leasing
from collector.jobs.runs import FLUSH_EVERY, RunHistory
from workers.alone import Alone
from workers.cadences import Cadences
from workers.claiming import Claiming
from workers.clock_watch import ClockWatch
from workers.duty import Duty
from workers.exchanges_open import OpenExchanges
from workers.job_run import JobRun
from workers.maintenance import Maintenance
from workers.reactions import JOB_RETRY, Reactions
from workers.renewal import Renewal, note_lost
from workers.running import Running
from workers.tries import Tries
from workers.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.backoff import Backoff
    from collector.connectors.limiter import Limiter
    from collector.jobs.lease import Lease
    from collector.lease_terms import LeaseTerms
    from collector.mongo.client import Database
    from collector.operations.wishes import WishKeeper
    from collector.publication.publisher import RedisPublisher
    from workers.handlers.registry import HandlerRegistry
    from workers.session_keeper import SessionKeeper

EARLY_SECONDS = 0.1
"""Jobs that wait for tokens are leased this much before the tokens are there: claiming them and
starting their requests would otherwise come out of every window of the budget."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration of a worker."""

    worker_id: str
    concurrency: int = 100
    exchanges: Sequence[str] = ()
    networks: Sequence[str] = ()
    """Networks of trade history whose jobs it runs."""
    poll_seconds: float = 2.0
    patience: float = 1.5
    retry: Backoff = JOB_RETRY
    tries: Tries = field(default_factory=Tries)
    lasting_after_ms: int = DAY_MS
    until_idle: bool = False
    """Stop by itself once nothing is due and nothing runs."""
    keep_deleted_days: float = 7.0
    data_root: str | None = None
    """Where the lake is, so that the room on its disk is reported."""

    @property
    def early_seconds(self) -> float:
        """A job that comes early waits for its token, which takes patience."""
        return min(EARLY_SECONDS, self.patience / 2)

    @property
    def reactions(self) -> Reactions:
        return Reactions(self.retry, round(self.early_seconds * 1000), self.lasting_after_ms)


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
        sessions: SessionKeeper | None = None,
        wishes: WishKeeper | None = None,
        publisher: RedisPublisher | None = None,
    ) -> None:
        self._config = config
        self._limiter = limiter
        self._clock = clock or SystemClock()
        self._leasing = Leasing(
            database, config.worker_id, terms=terms, clock=self._clock, types=handlers.types
        )
        self._renewal = Renewal(self._leasing, self._clock)
        self._alone = Alone(self._leasing, self._renewal)
        self._wakeup = Wakeup(
            database, poll_seconds=config.poll_seconds, job_changed=self._renewal.job_changed
        )
        exchanges = OpenExchanges(
            database,
            limiter,
            self._clock,
            only=config.exchanges,
            networks=config.networks,
            early_seconds=config.early_seconds,
        )
        self._claiming = Claiming(
            database,
            self._leasing,
            self._renewal,
            exchanges,
            self._clock,
            concurrency=config.concurrency,
            sessions=sessions,
        )
        if sessions is not None:
            sessions.on_lost = self._renewal.put_down
        self._history = RunHistory(database)
        self._running = Running(
            handlers,
            self._leasing,
            self._history,
            config.reactions,
            database.server_clock,
            self._clock,
            Cadences(database, self._clock),
        )
        self._maintenance = Maintenance(
            database,
            config.worker_id,
            config.concurrency,
            metrics_address,
            config.keep_deleted_days,
            wishes,
            data_root=config.data_root,
            publisher=publisher,
        )
        self._clock_watch = ClockWatch(database, self._wakeup.ring)
        self._draining = asyncio.Event()

    def drain(self) -> None:
        """No more claims; `run` returns when every job in hand has put down its step."""
        self._draining.set()
        self._renewal.drain()
        self._wakeup.ring()

    async def run(self) -> None:
        """Works until drained. The database must have been reached before."""
        async with asyncio.TaskGroup() as group:
            duties = [
                group.create_task(self._renewal.keep_renewing()),
                group.create_task(self._wakeup.keep_watching()),
                group.create_task(self._clock_watch.keep_looking()),
                group.create_task(self._keep_history()),
                group.create_task(self._maintenance.keep_going()),
                group.create_task(self._maintenance.keep_counting()),
            ]
            async with asyncio.TaskGroup() as jobs:
                await self._claim_until_drained(jobs)
            # Leases are renewed until the last job is settled, then the duties end.
            for duty in duties:
                duty.cancel()
        await self._history.flush()
        await self._maintenance.sign_off()

    async def _claim_until_drained(self, jobs: asyncio.TaskGroup) -> None:
        duty = Duty("claiming")
        while not self._draining.is_set():
            pause: float | None = None
            with duty.tolerated():
                pause = await self._claim(jobs)
            if duty.failures:
                self._claiming.in_doubt = True
                pause = duty.pause()
            if pause != 0 and not self._draining.is_set():
                await self._wakeup.wait(pause)

    async def _claim(self, jobs: asyncio.TaskGroup) -> float | None:
        """One round of claims; how long to wait before the next."""
        if self._alone.wanted:
            return None  # Its end rings.
        changed, self._wakeup.connectors_changed = self._wakeup.connectors_changed, False
        pause = await self._claiming.round(
            lambda lease: self._start(jobs, lease),
            connectors_changed=changed,
            stopping=lambda: self._draining.is_set() or self._alone.wanted,
        )
        if self._config.until_idle and pause != 0 and await self._claiming.nothing_left():
            self.drain()
        return pause

    def _start(self, jobs: asyncio.TaskGroup, lease: Lease) -> None:
        if lease.kills:
            metrics.JOBS_RESCUED.inc()
        run = JobRun(
            lease,
            self._leasing,
            self._limiter,
            clock=self._clock,
            patience=self._config.patience,
            tries=self._config.tries,
        )
        if lease.suspect:
            self._alone.expect(run)
        if self._draining.is_set():
            run.drain()
        self._maintenance.ran(lease.job.exchange_id, lease.job.document["stats"]["last_run_at"])
        self._renewal.hold(run, jobs.create_task(self._run(run), name=f"job:{lease.job_id}"))

    async def _run(self, run: JobRun) -> None:
        try:
            if run.lease.suspect:
                await self._alone.run(run, self._running.run)
            else:
                await self._running.run(run)
        except LeaseLost as error:
            note_lost(run, str(error))
        except Exception as error:  # noqa: BLE001 - whatever happens to one job, the worker goes on
            await self._running.end(run, error)
        finally:
            self._renewal.release(run)
            self._wakeup.ring()

    async def _keep_history(self) -> None:
        """Until cancelled; `run` flushes once more at the end."""
        duty = Duty("history")
        while True:
            await asyncio.sleep(FLUSH_EVERY + duty.pause())
            with duty.tolerated():
                await self._history.flush()
