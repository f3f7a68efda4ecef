"""Fetches a range of history with several pages in flight.

One page at a time cannot use a budget when the exchange is far away: with 300 ms to an answer it is
three requests per second whatever the limit. So pages are requested ahead of the cursor, stored in
any order, and the cursor moves over the unbroken run of finished ones. A crash repeats the pages
behind the first unfinished one, and a bar that is written twice counts once.

Every page begins at the last slot of the page before it. When both have arrived, the row that they
share shows that the exchange honoured the question, and that both are about the same market.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from collector.errors import NotServed, RetryLater
from collector.jobs.unconfirmed import progress_with_silences
from collector.market.answer import Question
from collector.market.candles import CandleBatch
from collector.market.interval import (
    Interval,
    clipped,
    end_of,
    subtract,
    unbroken,
    union,
    with_bars,
)
from collector.pipeline.evidence import Silence, Verdict, question_about, young_slots
from workers.handlers.asking import Inquiry, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from collector.market.answer import Answer
    from collector.market.series import Series
    from workers.job_run import JobRun
    from workers.venues import Venue

AHEAD = 128
"""Pages begun and not behind the cursor yet: in flight, or waiting for their write."""
MOST_SILENCES = 500
"""Open silences that an interrupted run leaves in its job; the others are missing."""
FEWEST = 8
MOST = 32
"""Requests under way at a time."""
_STEP = 4
"""So many more after as many answers as `FEWEST` with budget left: one burst does not widen it."""
_SHARED_BARS = 3
"""Bars before a page that it is compared with."""


@dataclass(eq=False, slots=True)
class _Page:
    """A window to be fetched: its task, and what of it is left to be asked about.

    `tail` holds the last bars that its first answer settled, for the page behind it.
    """

    window: Interval
    task: asyncio.Task[Verdict | NotServed] = field(init=False)
    tail: asyncio.Future[CandleBatch] = field(init=False)
    again: tuple[Interval, ...] = ()
    unended: tuple[Interval, ...] = ()
    last_ts: int = 0
    """The newest row in its window, stored now or before."""


class Fill:
    """Moves a job's cursor from `since_ms` to `until_ms`.

    What answers do not speak about is asked again as long as they make progress. An open silence,
    a refused bar and what the venue no longer serves are left uncovered behind the cursor: they
    are missing, and a gap job owns them.

    A page with a temporary fault is retried while the others continue. An error that ends the run
    stops all of them: pages under way finish, and no further one begins. Pages that were finished
    ahead of the cursor are then recorded in the job's `progress.ahead`, and the next run, on any
    worker, does not request them again.
    """

    def __init__(
        self, run: JobRun, venue: Venue, series: Series, *, turn: int | None = None
    ) -> None:
        """`turn`: stored bars around each page are compared with it, and questions vary by it."""
        assert run.cursor.until_ms is not None
        self.unserved: list[Interval] = []
        """What the venue no longer serves."""
        self._run = run
        self._venue = venue
        self._series = series
        self._frame = series.timeframe
        self._turn = turn
        self._until_ms = run.cursor.until_ms
        self._next_ms = run.cursor.since_ms
        self._ahead = union(Interval(a, b) for a, b in run.progress.get("ahead") or ())
        self._pages: deque[_Page] = deque()
        self._asked_for = self._unanswered = 0
        self._requests = RequestSlots(lambda: run.budget_is_spent)
        # Stored bars around each page are held in memory when it is compared with them.
        self._most_ahead = AHEAD if turn is None else FEWEST
        self.inquiry = Inquiry(run, venue, series, fetch=self._fetch, turn=turn or 0)

    async def run(self) -> None:
        """Returns when every slot was requested; raises what stopped it, the cursor kept."""
        await self.inquiry.begin(Interval(self._next_ms, max(self._until_ms, self._next_ms + 1)))
        try:
            while self._run.cursor.since_ms < self._until_ms:
                self._ask_ahead()
                if self._pages:
                    await asyncio.wait([self._pages[0].task])
                await self._move_cursor()
                await self.inquiry.settle_old(self._run.cursor.since_ms)
                if self._pages and _failed(self._pages[0]):
                    # The line is broken here: nothing behind can move the cursor now.
                    await self._remember_what_is_ahead()
                    self._run.check()
                    self._pages[0].task.result()
            await self.inquiry.settle_old()
            await self.inquiry.make_doubt_jobs()
        finally:
            for page in self._pages:
                page.task.cancel()
            await asyncio.gather(*(page.task for page in self._pages), return_exceptions=True)

    async def _remember_what_is_ahead(self) -> None:
        """Waits for the pages under way, whose tokens are spent, and notes what is stored."""
        await asyncio.wait([page.task for page in self._pages])
        finished = [page for page in self._pages if not _failed(page)]
        verdicts = [
            result for page in finished if isinstance(result := page.task.result(), Verdict)
        ]
        done = [part for page in finished for part in self._done(page)]
        open_silences = self.inquiry.silences[-MOST_SILENCES:]
        progress = progress_with_silences(self._run.progress, open_silences)
        if not done and progress == self._run.progress:
            return
        still_ahead = [each for each in self._ahead if each.to_ms > self._run.cursor.since_ms]
        ahead = [[each.from_ms, each.to_ms] for each in union(done + still_ahead)]
        await self._run.commit(
            self._run.cursor,
            pages=len(verdicts),
            bars=sum(len(verdict.bars) for verdict in verdicts),
            progress={**progress, "ahead": ahead},
        )

    def _ask_ahead(self) -> None:
        # Where rows are counted, the first answers show how wide a question may be.
        most = self._most_ahead if self.inquiry.knows_density else FEWEST
        while len(self._pages) < most:
            self._next_ms = end_of(self._ahead, self._next_ms)
            if self._next_ms >= self._until_ms or (self._run.halted and self._pages):
                return
            stretch = Interval(self._next_ms, self._open_end(self._next_ms))
            if not with_bars([stretch], self._frame):
                # The market is closed all the while: there is nothing to request.
                self._ahead = union([*self._ahead, stretch])
                continue
            left = self._pages[-1] if self._pages else None
            is_next = left is not None and left.window.to_ms == self._next_ms
            self._pages.append(self._begun(stretch, left if is_next else None))
            self._next_ms = self._pages[-1].window.to_ms

    def _open_end(self, ms: int) -> int:
        return min([self._until_ms, *(each.from_ms for each in self._ahead if each.from_ms > ms)])

    def _begun(self, stretch: Interval, left: _Page | None = None) -> _Page:
        """A page from the start of a range on. `left` is the page right before it."""
        frame = self._frame
        start_ms = frame.behind_closed(stretch.from_ms)
        slots = frame.count(stretch.from_ms, frame.ceil(stretch.to_ms))
        to_ms = frame.shift(start_ms, min(max(1, self.inquiry.width() - 1), slots))
        page = _Page(Interval(stretch.from_ms, max(to_ms, stretch.from_ms + 1)))
        page.tail = asyncio.get_running_loop().create_future()
        page.task = asyncio.create_task(self._fetched(page, start_ms, left))
        self._asked_for += 1
        self._unanswered += 1
        return page

    async def _fetched(self, page: _Page, start_ms: int, left: _Page | None) -> Verdict | NotServed:
        try:
            verdict, answers = await self._weighed(page, start_ms, left)
            await self.inquiry.keep(verdict, answers, alone=self._is_alone)
            self._divide(page, verdict, answers)
        except NotServed as older:
            return older
        except Exception as error:
            self._run.halt(error)
            raise
        finally:
            if not page.tail.done():
                page.tail.set_result(CandleBatch.empty())
        return verdict

    async def _weighed(
        self, page: _Page, start_ms: int, left: _Page | None
    ) -> tuple[Verdict, Sequence[Answer]]:
        """Asks about a page: with the stored bars around it at hand, or with the page before it."""
        window, inquiry = page.window, self.inquiry

        def show_tail(verdict: Verdict) -> None:
            page.tail.set_result(verdict.bars.take(slice(-_SHARED_BARS, None)))

        if self._turn is not None:
            known = await inquiry.read_known(window)
            question = question_about(known, window, turn=self._turn)
            first = await self._first(question)
            return await inquiry.ask(question, known, first=first, on_first=show_tail)
        # At once: pages behind it would take its token while it reads.
        question = self._plain_question(start_ms, window)
        first = await self._first(question)
        step = self._frame.ms
        if inquiry.covered(Interval(window.from_ms - step, window.to_ms + step)):
            known = await inquiry.read_known(window)
        else:
            before = CandleBatch.empty() if left is None else await left.tail
            known = inquiry.known(window, before.take(before.ts < window.from_ms))
        return await inquiry.ask(question, known, first=first, on_first=show_tail)

    async def _first(self, question: Question) -> Answer:
        try:
            return await self._fetch(question)
        finally:
            self._unanswered -= 1

    def _plain_question(self, start_ms: int, window: Interval) -> Question:
        """From the last slot before a window on; a row behind it is an anchor if there is room."""
        frame = self._frame
        # Not over closed time: a venue that trades in it would never come to the window.
        is_next = frame.end(frame.shift(start_ms, -1)) == frame.floor(start_ms)
        from_ms = frame.shift(start_ms, -1) if is_next else start_ms
        limit = min(self.inquiry.page, frame.count(from_ms, window.to_ms) + 1)
        return Question(frame, from_ms, window.to_ms, limit, window)

    async def _fetch(self, question: Question) -> Answer:
        async def fetched() -> Answer:
            # A page that pauses between two tries leaves its place to the others.
            async with self._requests.place():
                self._run.check()
                return await request(self._venue, self._series, question)

        return await self._run.tried(fetched)

    @property
    def _is_alone(self) -> bool:
        """Whether no other page is on its way that could be written together with this one.

        Not of short fills: there may be hundreds at a time, and a write each would be too many.
        """
        return not self._unanswered and self._asked_for >= FEWEST

    def _divide(self, page: _Page, verdict: Verdict, answers: Sequence[Answer]) -> None:
        """Notes which slots of a page no answer spoke about, and which are too young to tell.

        A young slot without a row may only be late: it is asked about again in a moment.
        """
        frame, first = self._frame, answers[0]
        mine = Interval(page.window.from_ms, min(page.window.to_ms, self._until_ms))
        rows = answers[-1].bars.ts
        page.last_ts = int(rows[rows < min(mine.to_ms, first.ended_ms)].max(initial=0))
        opens = [frame.floor(row.ts) for row in verdict.refused if row.ts is not None]
        spoken = [
            *unbroken(verdict.bars.ts, frame),
            *verdict.empty,
            *(silence.interval for silence in verdict.silences),
            *(Interval(ts, frame.end(ts)) for ts in opens),
        ]
        rest = subtract([mine], [*spoken, *self.inquiry.covered(mine)])
        young_ms, count = frame.shift(first.ended_ms, -young_slots(frame)), young_slots(frame)
        young = clipped(rest, Interval(young_ms, first.ended_ms))
        self.inquiry.silences += tuple(
            Silence(part.from_ms, part.to_ms, 0, first.at, first.at, 0, first.at + count * frame.ms)
            for part in with_bars(young, frame)
        )
        page.unended = subtract(rest, [Interval(0, first.ended_ms)])
        if clipped(spoken, mine):
            page.again = with_bars(subtract(rest, [*young, *page.unended]), frame)

    async def _move_cursor(self) -> None:
        """Over every finished page at the head of the line, and what was finished ahead."""
        before = self._run.cursor
        cursor, count, bars = before, 0, 0
        while self._pages and _succeeded(self._pages[0]):
            page = self._pages.popleft()
            result, done = page.task.result(), self._done(page)
            self._ahead = union([*self._ahead, *done])
            if isinstance(result, Verdict):
                cursor = replace(cursor, last_ts=max(cursor.last_ts, page.last_ts))
                count, bars = count + 1, bars + len(result.bars)
            else:
                self.unserved += clipped(done, Interval(0, self._until_ms))
            cursor = replace(cursor, page=cursor.page + 1)
            self._ask_again(page)
        cursor = replace(cursor, since_ms=min(end_of(self._ahead, before.since_ms), self._until_ms))
        self._ahead = tuple(each for each in self._ahead if each.to_ms > cursor.since_ms)
        if cursor != before:
            await self.inquiry.make_doubt_jobs()
            await self._run.commit(cursor, pages=count, bars=bars)

    def _done(self, page: _Page) -> tuple[Interval, ...]:
        """What of a page's own window needs no further question."""
        result, window = page.task.result(), page.window
        if isinstance(result, NotServed):
            from_ms = self._frame.next_open(result.from_ms - 1)
            # The venue's record says where its history begins; an answer speaks of one page.
            gone = Interval(window.from_ms, max(self._frame.next_open(window.from_ms), from_ms))
            page.again = subtract([window], [gone])
            return (gone,)
        return subtract([window], [*page.again, *page.unended])

    def _ask_again(self, page: _Page) -> None:
        """What is left of a page goes to the head of the line."""
        if page.unended:
            self._run.halt(
                RetryLater(
                    f"{self._series}: {page.unended[0].from_ms} has not ended yet at the venue",
                    retry_after_ms=self._frame.ms,
                )
            )
        pages: list[_Page] = []
        for stretch in sorted((*page.again, *page.unended)):
            reached_ms = stretch.from_ms
            while reached_ms < stretch.to_ms:
                pages.append(self._begun(Interval(reached_ms, stretch.to_ms)))
                reached_ms = pages[-1].window.to_ms
        self._pages.extendleft(reversed(pages))


def _succeeded(page: _Page) -> bool:
    return page.task.done() and not _failed(page)


def _failed(page: _Page) -> bool:
    task = page.task
    return task.done() and (task.cancelled() or task.exception() is not None)


class RequestSlots:
    """Places for requests, a number that follows the budget.

    Few are enough where the budget is the limit: the others would only wait for their tokens. Where
    the budget is not spent, the distance to the exchange is the limit, and more requests under way
    bring more pages. So the number grows as long as answers come and the budget lasts, and falls
    back as soon as the budget is spent.
    """

    def __init__(self, is_spent: Callable[[], bool]) -> None:
        """`is_spent` returns whether the budget is spent now."""
        self._is_spent = is_spent
        self._places = asyncio.Semaphore(FEWEST)
        self._unspent = 0
        self.width = FEWEST

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for one request, until its answer was judged."""
        await self._places.acquire()
        try:
            yield
            self._unspent += 1
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._is_spent():
            self._unspent = 0
            if self.width > FEWEST:
                self.width -= 1
                return  # The place goes with its request.
        elif self._unspent >= FEWEST and self.width < MOST:
            self._unspent = 0
            self.width += _STEP
            for _ in range(_STEP):
                self._places.release()
        self._places.release()
