"""`ohlcv_backfill` and `gap_backfill`: a stretch of history, several pages in flight.

One page at a time cannot use a budget when the exchange is far away: with 300 ms to an answer it
is three requests a second whatever the limit. So pages are asked for ahead of the cursor, stored
in whatever order they come, and the cursor moves over the unbroken run of finished ones. A crash
repeats the pages behind the first unfinished one, and a bar stored twice is stored once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.errors import BadRequest, RetryLater
from collector.market.interval import Interval, union
from workers.handlers.bars import Answer, ask, keep, series_of
from workers.handlers.registry import Done, Outcome

if TYPE_CHECKING:
    from collector.market.series import Series
    from workers.handlers.gap_scan import GapScan
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

IN_FLIGHT = 8
"""Requests of one job under way at a time."""
AHEAD = 64
"""Pages begun and not behind the cursor yet: in flight, or waiting for their write."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """From the earliest bar to where the incremental job took over, then done for good."""

    venues: Venues
    gaps: GapScan

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await self.venues.with_markets(series.exchange_id, series.symbol)
        if run.cursor.until_ms is None:
            raise BadRequest("a backfill needs cursor.until_ms, the moment where it ends")
        if run.cursor.page == 0:
            await self._begin(run, venue, series)
        await Fill(run, venue, series).to_the_end()
        # The history is whole: let any tool read it as one plain file.
        listed = await self.venues.book.is_listed(series.exchange_id, series.symbol)
        seal = venue.store.compact if listed else venue.store.freeze
        await asyncio.to_thread(seal, series)
        # Bars that were refused left holes: a job of their own asks for them once more.
        await self.gaps.scan(run, [series], any_age=True)
        return Done(cursor=replace(run.cursor, done=True))

    async def _begin(self, run: JobRun, venue: Venue, series: Series) -> None:
        """Moves the cursor to the first bar there is."""
        run.check()
        first = await venue.exchange.earliest_bar_ms(series.symbol, series.timeframe)
        if first is None:
            # Some venues answer empty when they are busy: no history at all is asked for twice.
            first = await venue.exchange.earliest_bar_ms(series.symbol, series.timeframe)
        until = run.cursor.until_ms or 0
        since = until if first is None else max(first, run.cursor.since_ms)
        begun = replace(run.cursor, since_ms=min(since, until), page=1)
        await run.commit(begun, progress={"from_ms": begun.since_ms, "until_ms": until})


@dataclass(frozen=True, slots=True)
class GapBackfill:
    """One missing stretch, and then the job is gone."""

    venues: Venues

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await self.venues.with_markets(series.exchange_id, series.symbol)
        if run.cursor.until_ms is None:
            raise BadRequest("a gap job needs cursor.since_ms and cursor.until_ms")
        await Fill(run, venue, series).to_the_end()
        return Done(vanish=True)


@dataclass(frozen=True, slots=True)
class _Page:
    """A window asked for: its place in line, and the task that fetches and stores it."""

    from_ms: int
    to_ms: int
    task: asyncio.Task[Answer]


class Fill:
    """Brings a job's cursor from `since_ms` to `until_ms`.

    Pages that were finished ahead of the cursor when a run ended are remembered in the job's
    `progress.ahead`, and the next run, wherever it is, does not ask for them again.
    """

    def __init__(self, run: JobRun, venue: Venue, series: Series) -> None:
        assert run.cursor.until_ms is not None
        self._run = run
        self._venue = venue
        self._series = series
        self._until_ms = run.cursor.until_ms
        self._next_ms = run.cursor.since_ms
        self._ahead = [Interval(a, b) for a, b in run.progress.get("ahead") or ()]
        self._pages: deque[_Page] = deque()
        self._requests = asyncio.Semaphore(IN_FLIGHT)
        self._stop: Exception | None = None

    async def to_the_end(self) -> None:
        """Returns when every slot is settled; lets out what stopped it, the cursor kept."""
        try:
            while self._run.cursor.since_ms < self._until_ms:
                self._ask_ahead()
                if self._pages:
                    await asyncio.wait([self._pages[0].task])
                await self._move_cursor()
                if self._pages and self._pages[0].task.done():
                    # The line is broken here: nothing behind can move the cursor now.
                    await self._let_the_sent_ones_finish()
                    self._pages[0].task.result()
        finally:
            for page in self._pages:
                page.task.cancel()
            await asyncio.gather(*(page.task for page in self._pages), return_exceptions=True)

    async def _let_the_sent_ones_finish(self) -> None:
        """Their tokens are spent: what they bring is stored, and remembered for the next run."""
        await asyncio.wait([page.task for page in self._pages])
        finished = [
            Interval(page.from_ms, page.task.result().to_ms)
            for page in self._pages
            if _succeeded(page.task) and page.task.result().to_ms > page.from_ms
        ]
        still_ahead = [each for each in self._ahead if each.to_ms > self._run.cursor.since_ms]
        if finished:
            ahead = [[each.from_ms, each.to_ms] for each in union(finished + still_ahead)]
            progress = {**self._run.progress, "ahead": ahead}
            bars = sum(p.task.result().bars for p in self._pages if _succeeded(p.task))
            await self._run.commit(
                self._run.cursor, pages=len(finished), bars=bars, progress=progress
            )

    def _ask_ahead(self) -> None:
        while len(self._pages) < AHEAD:
            self._next_ms = self._behind_ahead(self._next_ms)
            if self._next_ms >= self._until_ms or (self._stop is not None and self._pages):
                return
            self._pages.append(self._asked(self._next_ms, self._open_end(self._next_ms)))
            self._next_ms = self._pages[-1].to_ms

    def _behind_ahead(self, ms: int) -> int:
        """The end of what was finished ahead at `ms`; `ms` itself when nothing was."""
        return next((each.to_ms for each in self._ahead if each.from_ms <= ms < each.to_ms), ms)

    def _open_end(self, ms: int) -> int:
        return min([self._until_ms, *(each.from_ms for each in self._ahead if each.from_ms > ms)])

    def _asked(self, from_ms: int, end_ms: int) -> _Page:
        step = self._series.timeframe.ms
        limit = min(self._venue.quirks.default_page, -(-(end_ms - from_ms) // step))
        return _Page(
            from_ms, from_ms + limit * step, asyncio.create_task(self._page(from_ms, limit))
        )

    async def _page(self, from_ms: int, limit: int) -> Answer:
        try:
            async with self._requests:
                # Whoever waited in line asks no more once anything says stop.
                if self._stop is not None:
                    raise self._stop
                self._run.check()
                answer = await ask(self._venue, self._series, from_ms, limit)
            await keep(self._venue, answer, fence=self._run.fence)
        except Exception as error:
            self._stop = self._stop or error
            raise
        return answer

    async def _move_cursor(self) -> None:
        """Over every finished page at the head of the line, and what was finished ahead."""
        before = self._run.cursor
        cursor = replace(before, since_ms=self._passed(before.since_ms))
        count, bars = 0, 0
        while self._pages and _succeeded(self._pages[0].task):
            page = self._pages.popleft()
            answer = page.task.result()
            cursor = replace(
                cursor,
                since_ms=self._passed(max(answer.to_ms, cursor.since_ms)),
                last_ts=max(cursor.last_ts, answer.last_ts),
                page=cursor.page + 1,
            )
            count, bars = count + 1, bars + answer.bars
            if cursor.since_ms < min(page.to_ms, self._until_ms):
                self._ask_the_rest(page, cursor.since_ms)
        if cursor != before:
            await self._run.commit(cursor, pages=count, bars=bars)

    def _passed(self, ms: int) -> int:
        return min(self._behind_ahead(ms), self._until_ms)

    def _ask_the_rest(self, page: _Page, from_ms: int) -> None:
        """A short answer: what it left open goes to the head of the line."""
        if from_ms <= page.from_ms:
            # Nothing at all was settled, so close to now that the venue may not know yet.
            self._stop = RetryLater(
                f"{self._series}: the venue has not settled {from_ms} yet",
                retry_after_ms=self._series.timeframe.ms,
            )
        self._pages.appendleft(self._asked(from_ms, page.to_ms))


def _succeeded(task: asyncio.Task[Answer]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
