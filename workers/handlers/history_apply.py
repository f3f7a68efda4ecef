"""`history_apply`: takes a network's events from the inbox into the ledger, in order.

The ledger records how far it has come; the cursor and the inbox follow it. So a worker may die
between any two steps, and the next one finds what is left to do. The writer stays in memory between
runs: its files show whether another worker has written since.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from collector import logs, metrics
from collector.errors import BadRequest, DataInvalid, LeaseLost
from collector.history.inbox import EventInbox
from collector.history.writer import HistoryWriter, Overtaken
from collector.jobs.cursor import SequenceCursor
from collector.jobs.network import network_of
from collector.store.port import Corrupt
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.history.event import Event
    from collector.history.ledger import Ledger
    from collector.history.terms import HistoryTerms
    from collector.mongo.client import Database
    from collector.store.store import Store
    from workers.job_run import JobRun

T = TypeVar("T")

_log = logs.get("collector.history")
EVENTS_AT_A_TIME = 2_000


class HistoryApply:
    """Applies events until the inbox is empty, and makes buckets of another length meanwhile."""

    def __init__(self, database: Database, store: Store, terms: HistoryTerms) -> None:
        self._database = database
        self._store = store
        self._terms = terms
        self._writers: dict[str, _Writing] = {}
        self._impossible: set[str] = set()
        """Networks whose trades do not fit into buckets of the configured length."""

    async def __call__(self, run: JobRun) -> Outcome:
        network = network_of(run.job.exchange_id)
        if network is None:
            raise BadRequest(f"a {run.job.type} job belongs to a network")
        applying = _Applying(run, EventInbox(self._database, network), self._writer(network))
        try:
            await applying.open()
            while await applying.events() or await self._rebucket(applying):
                run.check()
            await applying.writing.do(applying.writing.writer.save_seldom)
        except Overtaken as error:
            raise LeaseLost(str(error)) from error
        except Corrupt as error:
            await applying.inbox.report_damage(error.path, error.why)
            raise
        return Again(cursor=SequenceCursor(applying.head))

    def _writer(self, network: str) -> _Writing:
        if network not in self._writers:
            terms = self._terms
            writer = HistoryWriter(
                self._store.storage,
                network,
                bucket_sec=terms.bucket_sec,
                cross_net=terms.cross_net,
            )
            self._writers[network] = _Writing(writer)
        return self._writers[network]

    async def _rebucket(self, applying: _Applying) -> bool:
        """One step towards buckets of the configured length; returns whether there are more."""
        network = applying.inbox.network
        if network in self._impossible:
            return False
        try:
            return await applying.writing.do(applying.writing.writer.rebucket)
        except DataInvalid as error:
            self._impossible.add(network)
            _log.error("history_rebucket_impossible", network=network, error=str(error))
            return False


class _Writing:
    """A writer, and one thread at a time that uses it.

    A run whose lease is lost is cancelled, and its thread is not: the next run waits for it.
    """

    def __init__(self, writer: HistoryWriter) -> None:
        self.writer = writer
        self._turn = threading.Lock()

    async def do(self, step: Callable[[], T]) -> T:
        def in_turn() -> T:
            with self._turn:
                return step()

        return await asyncio.to_thread(in_turn)


class _Applying:
    """One run on one network."""

    def __init__(self, run: JobRun, inbox: EventInbox, writing: _Writing) -> None:
        self.inbox = inbox
        self.writing = writing
        self.head = 0
        self._run = run

    async def open(self) -> None:
        """Finds out how far the ledger is, and lets the inbox know."""

        def opened() -> Ledger:
            self.writing.writer.resume(self._run.fence)
            return self.writing.writer.ledger

        ledger = await self.writing.do(opened)
        await self.inbox.learn(ledger)
        self.head = ledger.head
        if self.head > self._run.job.cursor_as(SequenceCursor).applied_through:
            # The last worker died after the ledger was written and before it could report that.
            await self._report()

    async def events(self) -> bool:
        """Applies what is in the inbox, as much as is done at a time; whether there was any."""
        events = await self.inbox.after(self.head, EVENTS_AT_A_TIME)
        if not events:
            return False
        self._run.check()
        await self.writing.do(partial(self._apply, events))
        self.head = events[-1][0]
        await self._report()
        return True

    def _apply(self, events: Sequence[tuple[int, Event]]) -> None:
        network, counters = self.inbox.network, self.writing.writer.counters
        rebuilds, seconds = counters.rebuilds, counters.rebuild_s
        outcomes = self.writing.writer.apply(events)
        for outcome, count in outcomes.items():
            metrics.HISTORY_TRADES.labels(network, outcome.value).inc(count)
        if counters.rebuilds > rebuilds:
            metrics.HISTORY_REBUILDS.labels(network).inc(counters.rebuilds - rebuilds)
            metrics.HISTORY_REBUILD_SECONDS.labels(network).inc(counters.rebuild_s - seconds)
            metrics.HISTORY_LAST_REBUILD.labels(network).set(counters.last_rebuild_s)
        _log.debug(
            "history_applied",
            network=network,
            through=events[-1][0],
            rebuilt=counters.rebuilds - rebuilds,
            **{outcome.value: count for outcome, count in outcomes.items()},
        )

    async def _report(self) -> None:
        await self.inbox.applied(self.head)
        await self._run.commit(SequenceCursor(self.head), pages=1)
