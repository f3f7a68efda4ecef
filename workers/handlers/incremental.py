"""`ohlcv_incremental`: the bars that closed since the last run, usually one request."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from collector.errors import NotServed
from collector.jobs.gap_jobs import gap_jobs
from collector.jobs.published import published_ms
from collector.jobs.unconfirmed import progress_with_silences
from collector.market.answer import Question
from collector.market.interval import Interval, clipped, end_of, unbroken, union
from collector.operations import connected_jobs
from collector.pipeline.evidence import REVISABLE_MS, cut, weigh_usual
from collector.publication.closed_bars import ClosedBars
from workers.handlers.asking import ALWAYS, Inquiry, request, series_of, with_missed
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bson import ObjectId

    from collector.jobs.job import Cursor
    from collector.market.answer import Answer
    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.pipeline.evidence import Activity, Silence, Verdict
    from collector.publication.publisher import RedisPublisher
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues


LOOK_BACK_BARS = 3
REMEMBERED_BARS = 8
MOST_ANSWERS = 3
"""A poll asks at most twice more; what is still open then waits until it is due."""


@dataclass(frozen=True, slots=True)
class _Recent:
    """What this process knows of the end of a series, as its last run left it."""

    fence: int
    bars: CandleBatch
    empty: tuple[Interval, ...]
    activity: Activity


@dataclass(frozen=True, slots=True)
class Incremental:
    """Requests from the cursor on, page after page when it is behind, until nothing is new.

    Every request but the first goes back a few bars: exchanges correct a bar shortly after its
    close. When the end of the series is an open silence, requests begin at the last bar, so that
    the first answer after an outage has all its bars. The cursor stays before a silence at the edge
    of now. One that has an end is handed to a gap job, and so is the older part of one that is
    longer than a page. What the venue no longer serves is left missing: the cursor continues from
    the oldest bar there is.
    """

    venues: Venues
    recent: dict[ObjectId, _Recent] = field(default_factory=dict)
    publisher: RedisPublisher | None = None
    """Gets every bar that is new, when bars are published."""

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        inquiry = Inquiry(run, venue, series)
        while True:
            cursor = run.cursor
            if series.timeframe.count(cursor.since_ms, venue.clock.now_ms()) < 1:
                return Again()
            question = _question(cursor, inquiry.silences, series, venue)
            try:
                verdict, answers = await self._judged(run, venue, inquiry, question)
            except NotServed as older:
                await _skip(run, series, older)
                continue
            await inquiry.keep(verdict, answers)
            self._remember(run, inquiry, verdict, answers)
            moved = _moved(cursor, verdict, inquiry, answers)
            since_ms = await _hand_over(venue, series, inquiry, moved.since_ms)
            moved = replace(moved, since_ms=since_ms)
            await self._publish(run, venue, series, verdict, since_ms)
            progress = progress_with_silences(run.progress, inquiry.silences)
            is_behind = question.limit >= inquiry.page and moved.since_ms > cursor.since_ms
            if not is_behind:
                # The finish writes the cursor too: one statement for the usual run.
                run.count(moved, pages=1, bars=len(verdict.bars))
                return Again(cursor=moved, progress=progress)
            await run.commit(moved, pages=1, bars=len(verdict.bars), progress=progress)

    async def _judged(
        self, run: JobRun, venue: Venue, inquiry: Inquiry, question: Question
    ) -> tuple[Verdict, Sequence[Answer]]:
        """The verdict on a poll. The store is read only for an answer that is not a usual one."""
        recent = self.recent.get(run.job.id)
        if recent is not None and recent.fence not in (run.fence, run.fence - 1):
            recent = None
        window = Interval(question.from_ms, max(question.to_ms, question.from_ms + 1))
        known = inquiry.known(window)
        if recent is not None:
            inquiry.activity = recent.activity
            known = inquiry.known(window, recent.bars, recent.empty)
            known = replace(known, newest_ms=run.cursor.last_ts)
        first = await run.tried(lambda: request(venue, inquiry.series, question))
        usual = weigh_usual(known, first)
        if usual is not None:
            # Where stored bars are not known, only young ones are revised by one answer.
            young_ms = min(run.cursor.since_ms, first.ended_ms - REVISABLE_MS)
            is_new = (usual.bars.ts >= young_ms) | (recent is not None)
            return replace(usual, bars=usual.bars.only(is_new)), [first]
        if recent is None:
            await inquiry.begin(window)
            known = await inquiry.read_known(window)
        return await inquiry.ask(question, known, first=first, most=MOST_ANSWERS)

    def _remember(
        self, run: JobRun, inquiry: Inquiry, verdict: Verdict, answers: Sequence[Answer]
    ) -> None:
        before = self.recent.get(run.job.id)
        earlier = () if before is None else before.empty
        bars = answers[-1].bars
        inside = bars.ts < min(answers[-1].question.to_ms, answers[-1].ended_ms)
        bars = bars.only(inside).take(slice(-REMEMBERED_BARS, None))
        if not len(bars) and before is not None:
            bars = before.bars
        from_ms = int(bars.ts[0]) if len(bars) else run.cursor.since_ms
        empty = clipped(union([*earlier, *verdict.empty]), Interval(from_ms, ALWAYS.to_ms))
        self.recent[run.job.id] = _Recent(run.fence, bars, empty, inquiry.activity)

    async def _publish(
        self, run: JobRun, venue: Venue, series: Series, verdict: Verdict, until_ms: int
    ) -> None:
        """Hands over the bars behind the cursor. They are in the lake, so this must not fail."""
        if self.publisher is None:
            return
        from_ms, batch = run.cursor.since_ms, verdict.bars
        new = batch.take((batch.ts >= from_ms) & (batch.ts < until_ms))
        await self.publisher.publish_closed(
            ClosedBars(
                series,
                run.job.id,
                run.fence,
                from_ms,
                until_ms,
                published_ms(run.job),
                new,
                venue.server_clock.now_ms() / 1000,
            )
        )


def _question(
    cursor: Cursor, silences: Sequence[Silence], series: Series, venue: Venue
) -> Question:
    """From some bars before the cursor on, or from the last bar when a silence follows it."""
    frame, page, now_ms = series.timeframe, venue.quirks.default_page, venue.clock.now_ms()
    from_ms = frame.shift(cursor.since_ms, -LOOK_BACK_BARS) if cursor.page else cursor.since_ms
    if silences:
        from_ms = min(from_ms, cursor.last_ts) if cursor.last_ts else from_ms
        # The newest page: what lies before it is asked about when it is due.
        from_ms = max(from_ms, frame.shift(now_ms, 2 - page))
    # One more than has closed: the venue's running bar shows that it is up to date.
    limit = min(frame.count(frame.floor(from_ms), now_ms) + 1, page)
    return Question.of(frame, from_ms, limit)


def _moved(cursor: Cursor, verdict: Verdict, inquiry: Inquiry, answers: Sequence[Answer]) -> Cursor:
    """The cursor behind everything that is settled, and behind refused bars.

    A bar may have been stored before this run, and the cursor not moved. The slot of a refused bar
    stays missing, for a gap job to own; it must not block this job.
    """
    frame, ended_ms = inquiry.frame, answers[-1].ended_ms
    refused = [frame.end(frame.floor(row.ts)) for row in verdict.refused if row.ts is not None]
    ends = [part.to_ms for part in (*unbroken(verdict.bars.ts, frame), *verdict.empty)]
    since_ms = max([cursor.since_ms, *ends, *(ms for ms in refused if ms <= ended_ms)])
    stored = inquiry.covered(answers[0].question.interval)
    return replace(
        cursor,
        since_ms=end_of(stored, since_ms),
        last_ts=max(cursor.last_ts, inquiry.newest_ms),
        page=cursor.page + 1,
    )


async def _hand_over(venue: Venue, series: Series, inquiry: Inquiry, until_ms: int) -> int:
    """Gives the silences before the cursor, and what has become doubtful, to gap jobs.

    Of a silence at the edge of now the older half is handed over when it fills a page. Returns
    where the cursor is after that.
    """
    await inquiry.make_doubt_jobs()
    frame = series.timeframe
    if not inquiry.silences:
        return until_ms
    reach_ms = max(each.to_ms for each in inquiry.silences)
    if frame.count(until_ms, reach_ms) >= inquiry.page - LOOK_BACK_BARS:
        until_ms = frame.shift(reach_ms, -(inquiry.page // 2))
    closed = cut(inquiry.silences, [Interval(until_ms, ALWAYS.to_ms)])
    if closed:
        holes = union(silence.interval for silence in closed)
        await connected_jobs.add(venue.database, gap_jobs(series, holes, silences=closed))
        inquiry.silences = cut(inquiry.silences, [Interval(0, max(1, until_ms))])
    return until_ms


async def _skip(run: JobRun, series: Series, older: NotServed) -> None:
    """Goes on from the oldest bar that the venue serves."""
    cursor, frame = run.cursor, series.timeframe
    from_ms = max(frame.next_open(cursor.since_ms), frame.next_open(older.from_ms - 1))
    progress = with_missed(run, series, [Interval(cursor.since_ms, from_ms)])
    await run.commit(replace(cursor, since_ms=from_ms, page=0), progress=progress)
