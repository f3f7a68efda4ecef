"""`markets_refresh`: what the exchange lists today, and what became of the rest.

A market that left is frozen: its jobs stop, what the exchange still serves is fetched once more,
and the calendar ends with the last bar. When it returns, the time between is covered as empty,
because nothing was listed, and the jobs continue from there. Under a new name new jobs take over
where the old ones stopped. Everything here may be done twice: a change stays recorded until it is
fully processed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.errors import BadRequest, ExchangeUnavailable, NeedsOperator, RetryLater
from collector.jobs import types
from collector.jobs.freezing import Frozen
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.states import State, Status
from collector.market.candles import CandleBatch
from collector.market.interval import Interval, unbroken
from collector.market.series import Series
from collector.markets.changes import Kind
from collector.operations import connected_jobs
from collector.store.port import Corrupt
from workers.handlers.asking import Inquiry, series_of
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.jobs.freezing import Freezing
    from collector.jobs.job import Job
    from collector.mongo.client import Database, Document
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

LIVE = types.OHLCV_INCREMENTAL.name
_GO_ON = (LIVE, types.OHLCV_BACKFILL.name, types.TRADES_INCREMENTAL.name)
"""Types that go on under another name."""
MOST_NAMED = 100
STILL_RUNNING_MS = 1_000

_log = logs.get("workers.listings")


@dataclass(frozen=True, slots=True)
class Listings:
    """Processes the changes recorded in the book of markets."""

    venues: Venues
    database: Database
    freezing: Freezing

    async def heed(self, run: JobRun, venue: Venue) -> dict[str, list[str]]:
        """Everything there is to do; returns the symbols by what happened to them."""
        exchange_id = run.job.exchange_id
        done: dict[str, list[str]] = {}
        for market in await self.venues.book.news(exchange_id):
            run.check()
            kind = Kind(market["news"]["kind"])
            try:
                await self._heed(run, venue, market, kind)
            except Corrupt as error:
                # The change stays recorded, for the first refresh after the repair.
                _log.error("news_waits_for_repair", symbol=market["symbol"], path=error.path)
                continue
            await self.venues.book.heeded(market)
            done.setdefault(kind.value, []).append(market["symbol"])
        asked_for = await self.freezing.asked_for(exchange_id, LIVE)
        for market in await self.venues.book.unlisted(exchange_id, asked_for):
            # A job for new bars was created for a market that was gone already.
            run.check()
            with suppress(Corrupt):
                await self._delisted(run, venue, market, types=(LIVE,))
        return {kind: symbols[:MOST_NAMED] for kind, symbols in done.items()}

    async def _heed(self, run: JobRun, venue: Venue, market: Document, kind: Kind) -> None:
        if kind is Kind.DELISTED:
            await self._delisted(run, venue, market)
        elif kind is Kind.RELISTED:
            await self._relisted(run, venue, market)
        elif kind is Kind.RENAMED:
            await self._renamed(venue, market)
        else:
            _log_change(kind, market)

    async def _delisted(
        self, run: JobRun, venue: Venue, market: Document, *, types: tuple[str, ...] = ()
    ) -> None:
        exchange_id, symbol = market["exchange_id"], market["symbol"]
        message = f"delisted: {exchange_id} does not list {symbol} any more"
        jobs = await self.freezing.freeze(
            exchange_id, symbol, Frozen.DELISTED, message, types=types
        )
        _require_at_rest(jobs)
        left_ms = market.get("delisted_at") or venue.server_clock.now_ms()
        for job in jobs:
            if job.type == LIVE and job.cursor.since_ms:
                # An exchange that has removed the market cannot serve its last bars.
                with suppress(BadRequest):
                    await _asked(run, venue, series_of(job), job.cursor.since_ms, left_ms)
        await _end_calendars(venue, market)
        _log_change(Kind.DELISTED, market, jobs=len(jobs))

    async def _relisted(self, run: JobRun, venue: Venue, market: Document) -> None:
        exchange_id, symbol = market["exchange_id"], market["symbol"]
        jobs = await self.freezing.frozen(exchange_id, symbol, Frozen.DELISTED)
        _require_at_rest(jobs)
        for job in jobs:
            since_ms = await _bridged(run, venue, job, market) if job.type == LIVE else None
            await self.freezing.thaw(job.id, since_ms=since_ms)
        _log_change(Kind.RELISTED, market, jobs=len(jobs), relisted_ms=market["relisted_ms"])

    async def _renamed(self, venue: Venue, market: Document) -> None:
        exchange_id, symbol, now = market["exchange_id"], market["symbol"], market["renamed_to"]
        message = f"renamed: {exchange_id} lists {symbol} as {now}"
        jobs = await self.freezing.freeze(exchange_id, symbol, Frozen.RENAMED, message)
        _require_at_rest(jobs)
        for job in jobs:
            if job.type in _GO_ON:
                await self._go_on(job, now)
        await _end_calendars(venue, market)
        _log_change(Kind.RENAMED, market, jobs=len(jobs), renamed_to=now)

    async def _go_on(self, job: Job, symbol: str) -> None:
        """The same work under another symbol, from where it stopped."""
        at = job.cursor
        spec = JobSpec(
            job.exchange_id,
            job.type,
            symbol,
            job.timeframe,
            schedule=job.schedule,
            priority=job.priority,
            cursor=Cursor(since_ms=at.since_ms, until_ms=at.until_ms),
            params=job.params,
        )
        [(taken_over, made)] = await connected_jobs.add(self.database, [spec])
        if not made and taken_over.status is Status.PAUSED:
            # It had this name before.
            await self.freezing.thaw(taken_over.id, since_ms=at.since_ms)


def _require_at_rest(jobs: Iterable[Job]) -> None:
    """A worker may have a page of the series in hand, to be written in a moment."""
    if any(job.state is State.RUNNING for job in jobs):
        raise RetryLater("a job is still running", retry_after_ms=STILL_RUNNING_MS)


async def _asked(run: JobRun, venue: Venue, series: Series, since_ms: int, until_ms: int) -> int:
    """Asks about the whole range; returns how far the answers speak about it."""
    frame, inquiry = series.timeframe, Inquiry(run, venue, series)
    await inquiry.begin(Interval(since_ms, max(until_ms, since_ms + 1)))
    while since_ms < until_ms:
        end_ms = min(
            frame.shift(since_ms, inquiry.page // 2), max(frame.ceil(until_ms), since_ms + 1)
        )
        verdict = await inquiry.about(Interval(since_ms, end_ms))
        spoken = [*unbroken(verdict.bars.ts, frame), *verdict.empty]
        spoken += [each.interval for each in verdict.silences]
        reached_ms = max([each.to_ms for each in spoken], default=since_ms)
        if reached_ms <= since_ms:
            break
        since_ms = reached_ms
    return since_ms


async def _bridged(run: JobRun, venue: Venue, job: Job, market: Document) -> int:
    """Covers everything up to the new epoch; returns where the job continues.

    Up to the refresh that found the market gone, the exchange is queried: the job may have been
    behind. From there to the last refresh that found it gone there was nothing to request.
    """
    series = series_of(job)
    frame = series.timeframe
    gone_ms = frame.end(market["epochs"][-1]["delisted"])
    back_ms = frame.floor(market["relisted_ms"])
    span = await asyncio.to_thread(venue.store.span, series)
    end_ms = job.cursor.since_ms if span is None else span.to_ms
    since_ms = await _asked(run, venue, series, end_ms, gone_ms)
    away = Interval(gone_ms, back_ms) if gone_ms < back_ms else None
    if away is None:
        return since_ms
    await asyncio.to_thread(
        venue.store.append_page,
        series,
        CandleBatch.empty(),
        away,
        fence=run.fence,
        known_at=venue.server_clock.now_ms(),
    )
    return max(since_ms, back_ms)


async def _end_calendars(venue: Venue, market: Document) -> None:
    def end() -> None:
        for timeframe in market["timeframes"]:
            series = Series.of(market["exchange_id"], market["symbol"], timeframe)
            if venue.store.holds(series):
                venue.store.freeze(series)

    await asyncio.to_thread(end)


def _log_change(kind: Kind, market: Document, **more: Any) -> None:
    """One line each; a market whose jobs had to be touched is worth a warning."""
    log = _log.warning if more.get("jobs") else _log.info
    log(f"market_{kind}", exchange=market["exchange_id"], symbol=market["symbol"], **more)


@dataclass(frozen=True, slots=True)
class MarketsRefresh:
    """Requests every market, stores the answer in the book, and processes the changes in it.

    The job's `progress` shows the changes of its last run that had any.
    """

    venues: Venues
    listings: Listings

    async def __call__(self, run: JobRun) -> Outcome:
        run.check()
        venue = await self.venues.get(run.job.exchange_id)
        if venue.clock.is_due:
            # Not every exchange reports its time, and none has to.
            with suppress(NeedsOperator, ExchangeUnavailable):
                await venue.clock.measure(venue.exchange)
        await run.tried(lambda: self.venues.refresh(venue))
        changes = await self.listings.heed(run, venue)
        if changes:
            at_ms = venue.server_clock.now_ms()
            await run.commit(run.cursor, progress={"at_ms": at_ms, **changes})
        return Again()
