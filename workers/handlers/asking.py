"""One run's questions about one series: ask, weigh, ask again while the verdict says so, store.

The rule is `collector/pipeline/evidence.py`. This is the part that sends requests, reads the store
for what is known around a range, and keeps what was settled.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.errors import BadRequest, NotServed
from collector.jobs.gap_jobs import gap_jobs
from collector.jobs.unconfirmed import silences_of
from collector.market.answer import Answer
from collector.market.candles import NO_TRADE, CandleBatch
from collector.market.interval import Interval, clipped, subtract, unbroken, union, with_bars
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.operations import connected_jobs
from collector.pipeline.evidence import (
    MOST_ANSWERS,
    MOST_EMPTY,
    MOST_LONGER,
    WIDEST_PAGES,
    Activity,
    Known,
    confirm,
    cut,
    longer_question,
    question_about,
    weigh,
)
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from collector.jobs.job import Job
    from collector.market.answer import Question
    from collector.pipeline.evidence import Verdict
    from workers.job_run import JobRun
    from workers.venues import Venue

NEAR_NOW_BARS = 10
"""A full answer that ends this close to now may be a venue's newest rows, whatever the question."""
FEWEST_PAGES = 3
"""Pages of slots that show how many rows an answer has."""
ACTIVITY_PAGES = 20
"""Stored pages that show how a market trades when a run begins."""
MOST_RECHECKS = 5
"""Jobs in a row that ask about a doubtful range, each because the one before changed something."""
MISSED_KEPT = 20
"""Ranges that a job remembers as no longer served."""
ALWAYS = Interval(0, 2**52)

_log = logs.get("workers.asking")
_LONGER = (Timeframe.parse("1h"), Timeframe.parse("1d"))
_COLUMNS = ("ts", "o", "h", "l", "c", "v", "t", "is_gap", "gap_reason")


def series_of(job: Job) -> Series:
    """The series a job is about. Raises BadRequest when the job names none."""
    if not job.symbol or not job.timeframe:
        raise BadRequest(f"a {job.type} job needs a symbol and a timeframe")
    try:
        return Series.of(job.exchange_id, job.symbol, job.timeframe)
    except ValueError as error:
        raise BadRequest(str(error)) from error


class Inquiry:
    """What one run asks about one series, and what it knows."""

    def __init__(
        self,
        run: JobRun,
        venue: Venue,
        series: Series,
        *,
        fetch: Callable[[Question], Awaitable[Answer]] | None = None,
        turn: int = 0,
    ) -> None:
        """`turn` makes the questions of a job's runs differ from one another."""
        self.series, self.frame = series, series.timeframe
        self.page = venue.quirks.default_page
        self.counts_rows = venue.quirks.counts_rows
        self.activity = Activity()
        self.silences = silences_of(run.progress)
        self._run = run
        self._venue = venue
        self._fetch = fetch or self._fetch_alone
        self._turn = turn
        self._stored: tuple[Interval, ...] = ()
        self._oldest_ms, self.newest_ms = ALWAYS.to_ms, 0
        self._has_kept = False
        self._doubtful: tuple[Interval, ...] = ()
        """Settled ranges that an answer made doubtful."""

    async def begin(self, window: Interval) -> None:
        """Looks at what is stored of the series, and how it trades near a window."""
        await asyncio.to_thread(self._begin, window)

    def _begin(self, window: Interval) -> None:
        store, series = self._venue.store, self.series
        try:
            self._stored, cursor = store.covered(series), store.cursor(series)
        except Corrupt:
            return  # What the file held is unknown until it is repaired.
        if not self._stored:
            return
        self._oldest_ms = min(self._oldest_ms, self._stored[0].from_ms)
        self.newest_ms = (cursor.last_ts if cursor is not None else None) or 0
        end_ms = min(self._stored[-1].to_ms, self.frame.shift(window.to_ms, self.page))
        first_ms = max(0, self.frame.shift(end_ms, -ACTIVITY_PAGES * self.page))
        near = clipped(self._stored, Interval(first_ms, max(end_ms, 1)))
        if near:
            bars, _ = self._read(Interval(near[0].from_ms, near[-1].to_ms))
            self.activity = Activity.of(bars, near, self.frame, self.page)

    @property
    def knows_density(self) -> bool:
        """Whether enough pages were seen to tell how many slots an answer fills."""
        return self.activity.slots >= FEWEST_PAGES * self.page

    def width(self) -> int:
        """Slots that one answer is likely to fill, where rows are counted."""
        if not self.counts_rows or not self.knows_density:
            return self.page
        most = min(WIDEST_PAGES, 0.9 / max(self.activity.density, 1e-6))
        return int(self.page * max(1.0, most))

    async def read_known(self, window: Interval) -> Known:
        """What is stored and heard around a window."""
        reach = self.page * (WIDEST_PAGES if self.counts_rows else 1)
        around = self._around(window, reach)
        if not self._has_kept and not clipped(self._stored, around):
            return self.known(window)
        return self.known(window, *await asyncio.to_thread(self._read, around))

    def known(
        self, window: Interval, bars: CandleBatch | None = None, empty: tuple[Interval, ...] = ()
    ) -> Known:
        """The same with what is at hand."""
        near = self._around(window, self.page)
        return Known(
            self.frame,
            self.page,
            CandleBatch.empty() if bars is None else bars,
            empty,
            tuple(part for silence in self.silences if (part := silence.within(near))),
            self.activity,
            newest_ms=self.newest_ms,
            counts_rows=self.counts_rows,
            longer=longer_than(self.frame),
        )

    def covered(self, window: Interval) -> tuple[Interval, ...]:
        """What was stored of a window when the run began."""
        return clipped(self._stored, window)

    async def ask(
        self,
        question: Question,
        known: Known,
        *,
        first: Answer | None = None,
        most: int = MOST_ANSWERS,
        on_first: Callable[[Verdict], None] = lambda _: None,
    ) -> tuple[Verdict, Sequence[Answer]]:
        """The verdict on the answers to a question, and to those that follow from them.

        `first` is its answer, when it is here already; `on_first` gets what that alone settles.
        NotServed when the venue answers with its newest rows whatever it is asked.
        """
        answers = [await self._fetch(question) if first is None else first]
        while True:
            verdict = weigh(known, answers)
            if len(answers) == 1:
                on_first(verdict)
            if len(answers) >= MOST_EMPTY and all(map(self._is_of_another_time, answers)):
                raise NotServed(
                    f"{self.series.exchange_id} answers with its newest bars; those before "
                    f"{question.to_ms} are not to be had as bars",
                    from_ms=question.to_ms,
                )
            if verdict.ask is None or len(answers) >= most:
                break
            answers.append(await self._fetch(question_about(known, verdict.ask, answers)))
        self._learn(answers[0])
        return verdict, answers

    async def keep(
        self, verdict: Verdict, answers: Sequence[Answer], *, alone: bool = False
    ) -> None:
        """Remembers what a verdict changed, and returns when what it settled is durable.

        `alone`: no other page is on the way that could be written together with it. Slots that a
        verdict takes back stay as they are until the store can withdraw them: their ranges are
        asked about again, and the bars that come are stored.
        """
        self.activity = verdict.activity
        self._has_kept = True
        if len(verdict.bars):
            self._oldest_ms = min(self._oldest_ms, int(verdict.bars.ts[0]))
            self.newest_ms = max(self.newest_ms, int(verdict.bars.ts[-1]))
        from_ms = min(answer.question.from_ms for answer in answers)
        to_ms = max(from_ms + 1, *(answer.question.to_ms for answer in answers))
        self.silences = (*cut(self.silences, [Interval(from_ms, to_ms)]), *verdict.silences)
        self._doubtful = union([*self._doubtful, *verdict.recheck])
        await self._store(verdict, answers[-1].at, alone=alone)

    async def about(self, stretch: Interval) -> Verdict:
        """Asks about a range from a known bar before it to one behind it, and keeps the result."""
        known = await self.read_known(stretch)
        question = question_about(known, stretch, turn=self._turn)
        verdict, answers = await self.ask(question, known)
        await self.keep(verdict, answers)
        return verdict

    async def settle_old(self, until_ms: int | None = None) -> None:
        """Asks for longer bars about the silences that wait for them.

        With `until_ms`, where the cursor is: only when those before it fill a page. Bars must be
        durable before that.
        """
        limit_ms = ALWAYS.to_ms if until_ms is None else until_ms
        while question := longer_question(self._waiting(limit_ms)):
            page_end_ms = question.timeframe.shift(question.from_ms, self.page)
            if until_ms is not None and page_end_ms > until_ms:
                return
            await self._confirm(limit_ms)

    async def make_doubt_jobs(self) -> None:
        """Makes the jobs that ask about doubtful ranges again, before anything else is noted.

        A job that asks again may make further ones, a few times: an exchange that goes on changing
        its mind is not followed for ever.
        """
        ranges, self._doubtful = self._doubtful, ()
        turn = int(self._run.progress.get("recheck") or 0)
        if not ranges or turn >= MOST_RECHECKS:
            return
        cursor, end_ms = self._run.cursor, self.frame.end(self.newest_ms)
        # Before the first bar and behind the last one there is nothing to be wrong.
        settled = Interval(min(self._oldest_ms, end_ms - 1), end_ms)
        asks_on = turn and cursor.until_ms is not None and cursor.since_ms < cursor.until_ms
        mine = [Interval(cursor.since_ms, cursor.until_ms or 0)] if asks_on else []
        parts = subtract(clipped(ranges, settled), mine)
        for part in parts:
            _log.warning("answers_contradict", **_fields(self.series, part))
        specs = [spec for part in parts for spec in gap_jobs(self.series, [part])]
        if specs:
            again = [replace(spec, progress={"recheck": turn + 1}) for spec in specs]
            await connected_jobs.add(self._venue.database, again)

    async def _fetch_alone(self, question: Question) -> Answer:
        return await self._run.tried(lambda: request(self._venue, self.series, question))

    async def _confirm(self, until_ms: int) -> None:
        """Settles what a page of longer bars confirms, and asks about the rest of it at once."""
        for turn in range(MOST_LONGER):
            question = longer_question(self._waiting(until_ms), turn)
            assert question is not None
            is_last = turn == MOST_LONGER - 1
            try:
                answer = await self._fetch(question)
            except (BadRequest, NotServed):
                # It has no such bars, or none so old.
                now_ms = self._venue.server_clock.now_ms()
                answer, is_last = Answer(question, ended_ms=question.to_ms, at=now_ms), True
            bars, empty = await asyncio.to_thread(self._read, question.interval)
            # Pages that came in the meantime may have left silences of their own.
            known = replace(self._waiting(until_ms), bars=bars, empty=empty)
            verdict = confirm(known, answer, is_last=is_last)
            if verdict is not None:
                break
        assert verdict is not None
        others = [silence for silence in self.silences if silence not in known.silences]
        self.activity, self.silences = verdict.activity, (*verdict.silences, *others)
        if verdict.empty:
            await self._store(verdict, answer.at, alone=True)
        await self._ask_now([s.interval for s in verdict.silences if 0 < s.due_ms <= answer.at])

    def _waiting(self, until_ms: int) -> Known:
        """The silences before a moment, without bars."""
        silences = tuple(silence for silence in self.silences if silence.to_ms <= until_ms)
        return replace(self.known(ALWAYS), silences=silences)

    async def _ask_now(self, rest: list[Interval]) -> None:
        """Asks about silences that longer bars did not confirm, a page at a time."""
        while rest:
            end_ms = max(self.frame.shift(rest[0].from_ms, self.page // 2), rest[0].to_ms)
            near = [part for part in rest if part.to_ms <= end_ms]
            rest = [part for part in rest if part not in near]
            whole = Interval(near[0].from_ms, max(part.to_ms for part in near))
            covered = await asyncio.to_thread(self._venue.store.covered, self.series)
            left = with_bars(subtract([whole], covered), self.frame)
            if left:
                await self.about(Interval(left[0].from_ms, left[-1].to_ms))

    async def _store(self, verdict: Verdict, known_at: int, *, alone: bool) -> None:
        venue, series, fence = self._venue, self.series, self._run.fence
        covered = union([*unbroken(verdict.bars.ts, self.frame), *verdict.empty])

        async def write() -> None:
            if verdict.refused:
                quarantine = partial(venue.store.quarantine, fence=fence, known_at=known_at)
                await asyncio.to_thread(quarantine, series, verdict.refused)
            await venue.commit.add(
                series, verdict.bars, covered, fence=fence, known_at=known_at, alone=alone
            )

        await self._run.tried(write, begun=True)

    def _around(self, window: Interval, slots: int) -> Interval:
        first_ms = max(0, self.frame.shift(window.from_ms, -slots))
        return Interval(first_ms, self.frame.shift(window.to_ms, slots))

    def _read(self, window: Interval) -> tuple[CandleBatch, tuple[Interval, ...]]:
        """The stored bars of a range, and its slots without trades; nothing of a damaged file."""
        from_ms, columns = self.frame.floor(window.from_ms), [*_COLUMNS, *self.series.extra]
        try:
            table = self._venue.store.rows(self.series, from_ms, window.to_ms, columns=columns)
        except Corrupt:
            return CandleBatch.empty(), ()
        rows = CandleBatch.from_arrow(table, extra=self.series.extra)
        empty = unbroken(rows.ts[rows.gap == NO_TRADE], self.frame)
        return rows.take(~rows.filler), empty

    def _learn(self, answer: Answer) -> None:
        """A full answer that begins with the question and spans more slots than it has rows, far
        from now, shows that rows are counted: neither from now nor in a window.
        """
        asked, times = answer.question, answer.bars.ts
        if answer.full and len(times) and times[0] == asked.from_ms:
            behind_ms = self.frame.shift(asked.from_ms, asked.limit + 1)
            if times[-1] >= behind_ms and not self._is_near_now(answer):
                self.counts_rows = True

    def _is_of_another_time(self, answer: Answer) -> bool:
        """Whether a venue that was asked about the past has answered with its newest rows."""
        times = answer.bars.ts
        is_behind = len(times) > 0 and int(times[0]) >= answer.question.to_ms
        return answer.full and is_behind and self._is_near_now(answer)

    def _is_near_now(self, answer: Answer) -> bool:
        return int(answer.bars.ts[-1]) >= self.frame.shift(answer.ended_ms, -NEAR_NOW_BARS)


async def request(venue: Venue, series: Series, question: Question) -> Answer:
    """One request: the answer with its time, on the venue's clock and on the database's."""
    sent, sent_ms = venue.clock.monotonic(), venue.server_clock.now_ms()
    answer = await venue.exchange.fetch_bars(
        series.symbol, question.timeframe, question.from_ms, question.limit
    )
    arrived_ms = venue.server_clock.now_ms()
    venue.clock.observe(answer.server_ms, sent)
    if answer.server_ms is None:
        await venue.clock.keep_fresh(venue.exchange)
    now_ms = venue.clock.now_ms() if answer.server_ms is None else answer.server_ms
    # Where rows are counted a question is wider than a page; elsewhere a venue may have a smaller
    # page than was asked for.
    end_ms = question.timeframe.shift(question.from_ms, question.limit)
    to_ms = (
        min(question.to_ms, answer.question.to_ms) if question.to_ms <= end_ms else question.to_ms
    )
    return replace(
        answer,
        question=replace(answer.question, to_ms=to_ms, about=question.about),
        ended_ms=question.timeframe.floor(now_ms),
        at=answered_at(sent_ms, arrived_ms, venue.clock.on_servers_clock(answer.server_ms)),
        below_zero=venue.quirks.trades_below_zero,
    )


def answered_at(sent_ms: int, arrived_ms: int, reported_ms: int | None) -> int:
    """When the venue made an answer: between its request and its arrival, by the venue's own clock.

    A worker that was stopped reads an answer long after it was made. `reported_ms` is the venue's
    time, to the second; without it the answer may be as old as its request.
    """
    if reported_ms is None:
        return sent_ms
    return max(sent_ms, min(arrived_ms, reported_ms + 999))


def longer_than(frame: Timeframe) -> Timeframe | None:
    """The longer bars that may confirm silences: hours, for hours days; None for longer ones."""
    fits = [each for each in _LONGER if frame.ms < each.ms and each.ms % frame.ms == 0]
    return fits[0] if fits and frame.is_uniform else None


def progress_with(run: JobRun, stretches: Iterable[Sequence[int]]) -> dict[str, Any]:
    """A job's progress with further ranges (epoch ms) that the venue no longer served."""
    missed = [*(run.progress.get("missed") or ()), *map(list, stretches)]
    return {**run.progress, "missed": missed[-MISSED_KEPT:]}


def with_missed(run: JobRun, series: Series, stretches: Sequence[Interval]) -> dict[str, Any]:
    """The same for bars. Their slots are missing: archives or trades may mend them."""
    for each in stretches:
        _log.warning("bars_not_served", **_fields(series, each))
    return progress_with(run, [(each.from_ms, each.to_ms) for each in stretches])


def _fields(series: Series, stretch: Interval) -> dict[str, Any]:
    """The fields of a log line about a range of a series."""
    return {
        "exchange": series.exchange_id,
        "symbol": series.symbol,
        "timeframe": series.timeframe.name,
        "from_ms": stretch.from_ms,
        "to_ms": stretch.to_ms,
    }
