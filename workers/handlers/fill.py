"""Fetches a range of history with several pages in flight.

One page at a time cannot use a budget when the exchange is far away: with 300 ms to an answer it is
three requests a second whatever the limit. So pages are requested ahead of the cursor, stored in
any order, and the cursor moves over the unbroken run of finished ones. A crash repeats the pages
behind the first unfinished one, and a bar that is written twice counts once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from collector.errors import NotServed, RetryLater
from collector.market.interval import Interval, clipped, subtract, union, with_bars
from workers.handlers.asking import ask
from workers.handlers.bars import BarsAnswer, keep
from workers.handlers.in_flight import FEWEST, RequestSlots

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.market.series import Series
    from workers.job_run import JobRun
    from workers.venues import Venue

AHEAD = 128
"""Pages begun and not behind the cursor yet: in flight, or waiting for their write."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A requested window: its place in line, and the task that fetches and stores it."""

    window: Interval
    task: asyncio.Task[BarsAnswer | NotServed]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a page: ranges that are done, to be requested again, or too young."""

    done: tuple[Interval, ...]
    again: tuple[Interval, ...] = ()
    young: tuple[Interval, ...] = ()


class Fill:
    """Moves a job's cursor from `since_ms` to `until_ms`.

    What an answer does not cover is requested again as long as answers make progress. What is
    reported as empty, and what the venue no longer serves, is left uncovered behind the cursor: it
    is missing, and a gap job owns it.

    A page with a temporary fault is retried while the others continue. An error that ends the run
    stops all of them: pages under way finish, and no further one begins. Pages that were finished
    ahead of the cursor are then recorded in the job's `progress.ahead`, and the next run, on any
    worker, does not request them again.
    """

    def __init__(
        self,
        run: JobRun,
        venue: Venue,
        series: Series,
        *,
        judged: Callable[[BarsAnswer], BarsAnswer] | None = None,
    ) -> None:
        """`judged` decides finally what an answer covers; requests then overlap by a bar."""
        assert run.cursor.until_ms is not None
        self.unserved: list[Interval] = []
        """What the venue no longer serves."""
        self._run = run
        self._venue = venue
        self._series = series
        self._judged = judged
        self._until_ms = run.cursor.until_ms
        self._next_ms = run.cursor.since_ms
        self._ahead = union(Interval(a, b) for a, b in run.progress.get("ahead") or ())
        self._pages: deque[_Page] = deque()
        self._asked_for = self._unanswered = 0
        self._requests = RequestSlots(lambda: run.budget_is_spent)

    async def to_the_end(self) -> None:
        """Returns when every slot was requested; raises what stopped it, the cursor kept."""
        try:
            while self._run.cursor.since_ms < self._until_ms:
                self._ask_ahead()
                if self._pages:
                    await asyncio.wait([self._pages[0].task])
                await self._move_cursor()
                if self._pages and _failed(self._pages[0].task):
                    # The line is broken here: nothing behind can move the cursor now.
                    await self._remember_what_is_ahead()
                    self._run.check()
                    self._pages[0].task.result()
        finally:
            for page in self._pages:
                page.task.cancel()
            await asyncio.gather(*(page.task for page in self._pages), return_exceptions=True)

    async def _remember_what_is_ahead(self) -> None:
        """Waits for the pages under way, whose tokens are spent, and notes what is stored."""
        await asyncio.wait([page.task for page in self._pages])
        finished = [page for page in self._pages if not _failed(page.task)]
        answers = [
            result for page in finished if isinstance(result := page.task.result(), BarsAnswer)
        ]
        done = [part for page in finished for part in self._outcome(page).done]
        if not done:
            return
        still_ahead = [each for each in self._ahead if each.to_ms > self._run.cursor.since_ms]
        ahead = [[each.from_ms, each.to_ms] for each in union(done + still_ahead)]
        await self._run.commit(
            self._run.cursor,
            pages=len(answers),
            bars=sum(answer.bars for answer in answers),
            progress={**self._run.progress, "ahead": ahead},
        )

    def _ask_ahead(self) -> None:
        while len(self._pages) < AHEAD:
            self._next_ms = self._behind_ahead(self._next_ms)
            if self._next_ms >= self._until_ms or (self._run.halted and self._pages):
                return
            stretch = Interval(self._next_ms, self._open_end(self._next_ms))
            if not with_bars([stretch], self._series.timeframe):
                # The market is closed all the while: there is nothing to request.
                self._ahead = union([*self._ahead, stretch])
                continue
            self._pages.append(self._asked(stretch))
            self._next_ms = self._pages[-1].window.to_ms

    def _behind_ahead(self, ms: int) -> int:
        """The end of what was finished ahead at `ms`; `ms` itself when nothing was."""
        return next((each.to_ms for each in self._ahead if each.from_ms <= ms < each.to_ms), ms)

    def _open_end(self, ms: int) -> int:
        return min([self._until_ms, *(each.from_ms for each in self._ahead if each.from_ms > ms)])

    def _asked(self, stretch: Interval, *, overlap: bool = False) -> _Page:
        """Requests one page from the start of a range.

        With an `overlap`, from a bar before it to a bar after it: rows there show that the answer
        covers the slots between.
        """
        frame, largest = self._series.timeframe, self._venue.quirks.default_page
        extra = 1 if (overlap or self._judged is not None) and largest > 2 else 0
        bars = min(largest - extra, frame.count(stretch.from_ms, frame.ceil(stretch.to_ms)))
        start_ms = frame.behind_closed(stretch.from_ms)
        window = Interval(stretch.from_ms, frame.shift(start_ms, bars))
        # Not over closed time: a venue that trades in it would never come to the stretch.
        is_next = frame.end(frame.shift(start_ms, -1)) == frame.floor(start_ms)
        from_ms = frame.shift(start_ms, -extra) if is_next else start_ms
        limit = min(largest, bars + 2 * extra)
        page = self._page(from_ms, limit, window if extra else None)
        self._asked_for += 1
        self._unanswered += 1
        return _Page(window, asyncio.create_task(page))

    async def _page(
        self, from_ms: int, limit: int, window: Interval | None
    ) -> BarsAnswer | NotServed:
        async def fetched() -> BarsAnswer:
            # A page that pauses between two tries leaves its place to the others.
            async with self._requests.place():
                self._run.check()
                return await ask(self._venue, self._series, from_ms, limit)

        try:
            try:
                answer = await self._run.tried(fetched)
            finally:
                self._unanswered -= 1
            if self._judged is not None:
                answer = self._judged(answer)
            if window is not None:
                answer = answer.within(window)
            kept = partial(keep, self._venue, answer, fence=self._run.fence, alone=self._is_alone)
            await self._run.tried(kept, begun=True)
        except NotServed as older:
            return older
        except Exception as error:
            self._run.halt(error)
            raise
        return answer

    @property
    def _is_alone(self) -> bool:
        """Whether no other page is on its way that could be written together with this one.

        Not of short fills: there may be hundreds at a time, and a write each would be too many.
        """
        return not self._unanswered and self._asked_for >= FEWEST

    async def _move_cursor(self) -> None:
        """Over every finished page at the head of the line, and what was finished ahead."""
        before = self._run.cursor
        cursor, count, bars = before, 0, 0
        while self._pages and _succeeded(self._pages[0].task):
            page = self._pages.popleft()
            result, outcome = page.task.result(), self._outcome(page)
            self._ahead = union([*self._ahead, *outcome.done])
            if isinstance(result, BarsAnswer):
                cursor = replace(cursor, last_ts=max(cursor.last_ts, result.last_ts))
                count, bars = count + 1, bars + result.bars
            else:
                self.unserved += clipped(outcome.done, Interval(0, self._until_ms))
            cursor = replace(cursor, page=cursor.page + 1)
            self._ask_again(outcome)
        cursor = replace(cursor, since_ms=self._passed(before.since_ms))
        self._ahead = tuple(each for each in self._ahead if each.to_ms > cursor.since_ms)
        if cursor != before:
            await self._run.commit(cursor, pages=count, bars=bars)

    def _passed(self, ms: int) -> int:
        return min(self._behind_ahead(ms), self._until_ms)

    def _outcome(self, page: _Page) -> _Outcome:
        result, window = page.task.result(), page.window
        if isinstance(result, NotServed):
            frame = self._series.timeframe
            from_ms = frame.next_open(result.from_ms - 1)
            gone = Interval(window.from_ms, max(frame.next_open(window.from_ms), from_ms))
            return _Outcome((gone,), _from(window, gone.to_ms))
        mine = Interval(window.from_ms, min(window.to_ms, self._until_ms))
        young = subtract(_from(mine, result.edge_ms), (*result.covered, *result.refused))
        came_closer = clipped((*result.covered, *result.refused), mine)
        again = subtract(clipped(result.open, mine), young) if came_closer else ()
        reached = Interval(window.from_ms, max(window.to_ms, result.to_ms))
        return _Outcome(subtract([reached], [*again, *young]), again, young)

    def _ask_again(self, outcome: _Outcome) -> None:
        """What is left of a page goes to the head of the line."""
        if outcome.young:
            # So close to now that the venue may not know yet.
            young_ms = outcome.young[0].from_ms
            self._run.halt(
                RetryLater(
                    f"{self._series}: the venue has not completed {young_ms} yet",
                    retry_after_ms=self._series.timeframe.ms,
                )
            )
        pages: list[_Page] = []
        for stretch in sorted((*outcome.again, *outcome.young)):
            while not pages or pages[-1].window.to_ms < stretch.to_ms:
                reached_ms = pages[-1].window.to_ms if pages else stretch.from_ms
                rest = Interval(max(reached_ms, stretch.from_ms), stretch.to_ms)
                pages.append(self._asked(rest, overlap=True))
        self._pages.extendleft(reversed(pages))


def _from(stretch: Interval, from_ms: int) -> tuple[Interval, ...]:
    """The part of a stretch from a moment on, if there is one."""
    start_ms = max(stretch.from_ms, from_ms)
    return (Interval(start_ms, stretch.to_ms),) if start_ms < stretch.to_ms else ()


def _succeeded(task: asyncio.Task[BarsAnswer | NotServed]) -> bool:
    return task.done() and not _failed(task)


def _failed(task: asyncio.Task[BarsAnswer | NotServed]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
