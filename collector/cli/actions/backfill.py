"""What `datalayer backfill` does: the history of some symbols, made whole up to now.

The work itself is jobs, which workers do and any number of verbs may wait for. So it can be
repeated and interrupted at will: what is there is not fetched again, and what an interrupted verb
began is finished by whoever works next.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.cli.actions.connectors import ensured
from collector.cli.actions.known import known_exchange
from collector.cli.actions.own_worker import OwnWorker
from collector.cli.actions.tickers import listed_symbols, wants_all
from collector.cli.actions.venue import opened_venue
from collector.cli.actions.waiting import Waiting, progress_of_jobs
from collector.cli.answer import Answer, table
from collector.cli.failures import UsageMistake
from collector.cli.moments import SPAN_MS, moment_ms, shown_moment
from collector.cli.opened import opened
from collector.connectors.market_book import MarketBook
from collector.errors import JobConflict
from collector.jobs.gap_jobs import gap_jobs, missing
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.jobs.stream import stream_jobs
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reports.coverage import Coverage, coverage
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bson import ObjectId

    from collector.cli.verb import Asked
    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from collector.settings import Settings

BASE = Timeframe.parse("1m")
_HISTORY = "ohlcv_backfill"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be made whole."""

    exchange_id: str
    series: Sequence[Series]
    since_ms: int | None
    now_ms: int


async def backfill(
    asked: Asked, names: Sequence[str], since: str | None, exchange: str | None
) -> Answer:
    """Makes connector and jobs, sees to it that somebody works, and returns when all is there."""
    settings = asked.settings()
    exchange_id = known_exchange(exchange or settings.api.adapter)
    store = Store(settings.data_root)
    async with opened(asked, "datalayer backfill") as database:
        now_ms = database.server_clock.now_ms()
        since_ms = None if since is None else moment_ms(since, now_ms)
        if since_ms is not None and since_ms >= now_ms:
            raise UsageMistake(f"--since {since} is in the future")
        figures = {"max_concurrent_jobs": settings.api.max_concurrent}
        await ensured(database, exchange_id, figures)
        symbols = await _symbols(database, settings, store, exchange_id, names)
        series = [Series(exchange_id, symbol, BASE) for symbol in symbols]
        plan = Plan(exchange_id, series, since_ms, now_ms)
        worker = OwnWorker(asked, settings, database, exchange_id)
        with progress_of_jobs() as shown:
            async with worker:
                waiting = Waiting(
                    database,
                    exchange_id,
                    max_retries=settings.api.max_retries,
                    see_to_it=worker.see_to_it,
                    shown=shown,
                )
                made = Backfilling(JobQueue(database), store, plan, waiting)
                covered = await made.whole(settings.quality.gap_recovery_days)
    return _answer(plan, covered, worker.started)


async def _symbols(
    database: Database, settings: Settings, store: Store, exchange_id: str, names: Sequence[str]
) -> list[str]:
    """ALL is everything that is collected already: an exchange may list thousands."""
    if not wants_all(names):
        async with opened_venue(database, settings, exchange_id):
            return await listed_symbols(names, exchange_id, MarketBook(database))
    stored = await asyncio.to_thread(store.series, exchange_id)
    filters = {"exchange_id": exchange_id, "type": "ohlcv_incremental"}
    jobs = await JobQueue(database).find(filters, limit=100_000)
    found = {each.symbol for each in stored} | {str(job.symbol) for job in jobs}
    if not found:
        raise UsageMistake(f"nothing of {exchange_id} is collected yet: name the symbols")
    return sorted(found)


class Backfilling:
    """The steps, each of which ends when its jobs have come to rest."""

    def __init__(self, queue: JobQueue, store: Store, plan: Plan, waiting: Waiting) -> None:
        self._queue = queue
        self._store = store
        self._plan = plan
        self._waiting = waiting

    async def whole(self, recovery_days: int) -> list[Coverage]:
        """New bars and history, then history from before that, then what is still missing."""
        await self._waiting.for_all(await self._streams())
        await self._waiting.for_all(await self._earlier())
        await self._waiting.for_all(await self._gaps(recovery_days))
        return [
            await asyncio.to_thread(coverage, self._store, series) for series in self._plan.series
        ]

    async def _streams(self) -> list[ObjectId]:
        plan = self._plan
        jobs = [
            await self._queue.add(spec)
            for series in plan.series
            for spec in stream_jobs(
                plan.exchange_id,
                series.symbol,
                BASE.name,
                now_ms=plan.now_ms,
                since_ms=plan.since_ms or 0,
            )
        ]
        for job, new in jobs:
            if not new and _should_run(job):
                # It may have been paused or deleted a moment ago: waiting will tell.
                with suppress(JobConflict):
                    await self._queue.run(job.id)
        return [job.id for job, _ in jobs]

    async def _earlier(self) -> list[ObjectId]:
        """History from before what an earlier backfill was asked for."""
        if self._plan.since_ms is None:
            return []
        found: list[ObjectId] = []
        for series in self._plan.series:
            covered = await asyncio.to_thread(self._store.covered, series)
            if not covered or covered[0].from_ms <= BASE.next_open(self._plan.since_ms):
                continue
            cursor = Cursor(since_ms=self._plan.since_ms, until_ms=covered[0].from_ms)
            spec = JobSpec(series.exchange_id, _HISTORY, series.symbol, BASE.name, cursor=cursor)
            # The job that is done stands where the new one belongs.
            done, _ = await self._queue.add(spec)
            await self._queue.delete(done.id)
            found.append((await self._queue.add(spec))[0].id)
        return found

    async def _gaps(self, recovery_days: int) -> list[ObjectId]:
        """What is missing since `since`, or else lately, asked for once more."""
        lately = self._plan.now_ms - recovery_days * SPAN_MS["d"]
        after_ms = lately if self._plan.since_ms is None else self._plan.since_ms
        found: list[ObjectId] = []
        for series in self._plan.series:
            covered = await asyncio.to_thread(self._store.covered, series)
            specs = gap_jobs(series, missing(covered, ()), after_ms=after_ms)
            found += [(await self._queue.add(spec))[0].id for spec in specs]
        return found


def _should_run(job: Job) -> bool:
    """New bars are wanted now, and what failed is tried again on a person's word."""
    return job.type == "ohlcv_incremental" or job.state is State.FAILED


def _answer(plan: Plan, covered: Sequence[Coverage], started: bool) -> Answer:
    facts = {
        "exchange": plan.exchange_id,
        "worker_started": started,
        "series": [
            {
                "symbol": each.series.symbol,
                "tf": each.series.timeframe.name,
                "first_ts": each.first_ts,
                "last_ts": each.last_ts,
                "bars": each.present,
                "no_trade": each.no_trade,
                "missing": each.missing,
            }
            for each in covered
        ],
    }
    rows = [
        (
            each.series.symbol,
            each.series.timeframe,
            shown_moment(each.first_ts, seconds=False),
            shown_moment(each.last_ts, seconds=False),
            f"{each.present:,}",
            f"{each.no_trade:,}",
            f"{each.missing:,}",
        )
        for each in covered
    ]
    headings = ("symbol", "tf", "first", "last", "bars", "no_trade", "missing")
    return Answer(facts, table(headings, rows, right="bars no_trade missing"))
