"""The complete history of some symbols, up to now.

The work is done by jobs, which workers run and any number of callers may wait for. So a call can be
repeated and interrupted freely: stored bars are not fetched again, and the next worker finishes
what an interrupted call began.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import InvalidInput, JobConflict, MarketsUnavailable
from collector.exchanges.registry import is_exclusive
from collector.jobs import types
from collector.jobs.claims import claimed, lost
from collector.jobs.gap_jobs import gap_jobs, missing
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.jobs.stream import stream_jobs
from collector.market.series import Series
from collector.market.timeframe import MINUTE
from collector.markets.book import MarketBook
from collector.operations import connected_jobs, connectors, requested_history
from collector.operations.connectors import check_exchange
from collector.operations.moments import SPAN_MS, moment_ms
from collector.operations.opened_database import opened_database
from collector.operations.own_worker import OwnWorker
from collector.operations.tickers import listed_symbols, wants_all
from collector.operations.verb_venue import opened_venue
from collector.operations.waiting import Waiting
from collector.reports.coverage import Coverage, coverage
from collector.reports.expectations import expectations
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from bson import ObjectId

    from collector.jobs.job import Job
    from collector.market.moment import Moment
    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment
    from collector.operations.waiting import Shown
    from collector.reports.expected import Expected
    from collector.settings import Settings

    Watch = Callable[[], AbstractContextManager[Shown]]

_LIVE = types.OHLCV_INCREMENTAL.name


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be completed."""

    exchange_id: str
    series: Sequence[Series]
    since_ms: int | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What is stored now, and whether a worker was started for it."""

    plan: Plan
    covered: Sequence[Coverage]
    worker_started: bool


async def backfill(
    where: Deployment,
    names: Sequence[str],
    since: Moment | None,
    exchange: str | None,
    watch: Watch,
) -> Backfilled:
    """Creates connector and jobs, makes sure that a worker runs, and returns when all is stored.

    Slots that the exchange reports as empty and that are asked about later are not waited for.
    """
    settings = where.settings
    exchange_id = check_exchange(exchange or settings.api.adapter)
    store = Store(settings.data_root)
    async with opened_database(where, "datalayer backfill") as database:
        now_ms = database.server_clock.now_ms()
        since_ms = None if since is None else moment_ms(since, now_ms)
        if since_ms is not None and since_ms >= now_ms:
            raise InvalidInput("since", "in_the_future", f"`since` {since} is in the future")
        figures = {"max_concurrent_jobs": settings.api.max_concurrent}
        await connectors.ensure(database, exchange_id, figures)
        symbols = await _symbols(database, settings, store, exchange_id, names)
        series = [Series(exchange_id, symbol, MINUTE) for symbol in symbols]
        plan = Plan(exchange_id, series, since_ms, now_ms)
        worker = OwnWorker(where, database, exchange_id)
        with watch() as shown:
            async with worker:
                waiting = Waiting(
                    database,
                    exchange_id,
                    max_retries=settings.api.max_retries,
                    see_to_it=worker.see_to_it,
                    shown=shown,
                )
                made = Backfilling(database, store, plan, waiting)
                covered = await made.whole(settings.quality.gap_recovery_days)
    return Backfilled(plan, covered, worker.started)


async def _symbols(
    database: Database, settings: Settings, store: Store, exchange_id: str, names: Sequence[str]
) -> list[str]:
    """ALL is everything that is collected already: an exchange may list thousands."""
    if not wants_all(names):
        book = MarketBook(database)
        if is_exclusive(exchange_id):
            if not await book.symbols(exchange_id):
                raise MarketsUnavailable(
                    f"the markets of {exchange_id} are not known yet: a worker has to run first, "
                    "because its account allows one login"
                )
            return await listed_symbols(names, exchange_id, book)
        async with opened_venue(database, settings, exchange_id):
            return await listed_symbols(names, exchange_id, book)
    stored = await asyncio.to_thread(store.series, exchange_id)
    filters = {"exchange_id": exchange_id, "type": _LIVE}
    jobs = await JobQueue(database).find(filters, limit=100_000)
    found = {each.symbol for each in stored} | {str(job.symbol) for job in jobs}
    if not found:
        reason = f"nothing of {exchange_id} is collected yet: name the symbols"
        raise InvalidInput("symbols", "unknown_symbol", reason)
    return sorted(found)


class Backfilling:
    """The steps, each of which ends when its jobs are at rest."""

    def __init__(self, database: Database, store: Store, plan: Plan, waiting: Waiting) -> None:
        self._database = database
        self._store = store
        self._plan = plan
        self._waiting = waiting

    async def whole(self, recovery_days: int) -> list[Coverage]:
        """New bars and history, what was lost, what is missing."""
        await self._waiting.for_all(await self._streams())
        await self._waiting.for_all(await self._lost())
        await self._waiting.for_all(await self._gaps(recovery_days))
        expected = await self._expected()
        return [
            await asyncio.to_thread(coverage, self._store, series, expected[series])
            for series in self._plan.series
        ]

    async def _streams(self) -> list[ObjectId]:
        plan = self._plan
        specs = [
            spec
            for series in plan.series
            for spec in stream_jobs(
                plan.exchange_id,
                series.symbol,
                MINUTE.name,
                now_ms=plan.now_ms,
                since_ms=plan.since_ms or 0,
            )
        ]
        found = await requested_history.add(
            self._database, specs, since_is_given=plan.since_ms is not None
        )
        for each in found:
            if not each.made and _should_run(each.job):
                # It may have been paused or deleted just now; the waiting will show.
                with suppress(JobConflict):
                    await connected_jobs.run(self._database, each.job.id)
        return [each.job.id for each in found]

    async def _lost(self) -> list[ObjectId]:
        """What jobs have fetched and the lake no longer holds: a file or a folder was removed."""
        plan, book = self._plan, MarketBook(self._database)
        symbols = [
            series.symbol
            for series in plan.series
            if await book.is_listed(series.exchange_id, series.symbol)
        ]
        claims = await claimed(self._database, plan.exchange_id, symbols)
        mine = {series: [claims[series]] for series in plan.series if series in claims}
        covered = {each: await asyncio.to_thread(self._store.covered, each) for each in mine}
        specs = await lost(self._database, plan.exchange_id, mine, covered)
        return [job.id for job, _ in await connected_jobs.add(self._database, specs)]

    async def _gaps(self, recovery_days: int) -> list[ObjectId]:
        """What is missing since `since`, or else recently, requested once more.

        What is unconfirmed is left to the jobs that know when to ask about it.
        """
        lately = self._plan.now_ms - recovery_days * SPAN_MS["d"]
        after_ms = lately if self._plan.since_ms is None else self._plan.since_ms
        expected = await self._expected()
        found: list[ObjectId] = []
        for series in self._plan.series:
            covered = await asyncio.to_thread(self._store.covered, series)
            unconfirmed = [each.interval for each in expected[series].unconfirmed]
            specs = gap_jobs(series, missing(covered, unconfirmed), after_ms=after_ms)
            found += [job.id for job, _ in await connected_jobs.add(self._database, specs)]
        return found

    async def _expected(self) -> Mapping[Series, Expected]:
        now_ms = self._database.server_clock.now_ms()
        return await expectations(self._database, self._plan.series, now_ms)


def _should_run(job: Job) -> bool:
    """New bars are wanted now, and failed jobs are retried because an operator asked for it."""
    return job.type == _LIVE or job.state is State.FAILED
