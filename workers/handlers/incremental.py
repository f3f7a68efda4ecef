"""`ohlcv_incremental`: the bars that closed since the last run, usually one request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from collector.errors import NotServed
from collector.jobs import silences
from collector.jobs.published import published_ms
from collector.jobs.silences import LIVE_AGAIN_MS, LONG_AGAIN_MS
from collector.market.interval import Interval
from collector.pipeline.proof import LONG_SLOTS, is_long
from collector.publication.closed_bars import ClosedBars
from workers.handlers.asking import ask
from workers.handlers.bars import keep, series_of
from workers.handlers.missed import with_missed
from workers.handlers.registry import Again, Outcome
from workers.handlers.trading import Trading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bson import ObjectId

    from collector.jobs.job import Cursor
    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.publication.publisher import RedisPublisher
    from workers.handlers.bars import BarsAnswer
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues


LOOK_BACK_BARS = 3


@dataclass(frozen=True, slots=True)
class Incremental:
    """Requests from the cursor on, page after page when it is behind, until nothing is new.

    Every request but the first goes back a few bars: exchanges correct a bar shortly after its
    close. Unchanged bars are not written again, if this process wrote them in the run before. When
    another worker had the job since, what it wrote is not known here.

    An empty answer is accepted when an earlier run received the same. When a market that trades has
    been silent for hours, nothing more is accepted until it trades again, or for days: then the
    whole silence is requested once more. What the venue no longer serves is left missing: the
    cursor continues from the oldest bar there is.
    """

    venues: Venues
    latest: dict[ObjectId, tuple[int, CandleBatch]] = field(default_factory=dict)
    """The newest bars of each job as they were last received, and the fence of that run."""
    usual: dict[ObjectId, tuple[int, float]] = field(default_factory=dict)
    """Rows a slot of markets that fell silent, with their last bar."""
    publisher: RedisPublisher | None = None
    """Gets every bar that is new, when bars are published."""

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        while True:
            cursor = run.cursor
            closed = series.timeframe.count(cursor.since_ms, venue.clock.now_ms())
            if closed < 1:
                return Again()
            back = LOOK_BACK_BARS if cursor.page else 0
            # One more than has closed: the venue's running bar shows that it is up to date.
            limit = min(back + closed + 1, venue.quirks.default_page)
            try:
                answer = await _asked(run, venue, series, back, limit)
            except NotServed as older:
                await _skip(run, series, older)
                continue
            holds = await self._holds(run, venue, series)
            if holds and answer.last_ts > cursor.last_ts:
                await self._look_back(run, venue, series)
            answer, progress = (answer, None) if holds else _listened(run, venue, answer)
            await self._keep(run, venue, answer)
            moved = replace(
                cursor,
                since_ms=max(cursor.since_ms, answer.to_ms),
                last_ts=max(cursor.last_ts, answer.last_ts),
                page=cursor.page + 1,
            )
            await self._publish(run, venue, answer, moved.since_ms)
            caught_up = limit < venue.quirks.default_page or answer.to_ms <= cursor.since_ms
            if caught_up:
                # The finish writes the cursor too: one statement for the usual run.
                run.count(moved, pages=1, bars=answer.bars)
                return Again(cursor=moved, progress=progress)
            await run.commit(moved, pages=1, bars=answer.bars, progress=progress)

    async def _holds(self, run: JobRun, venue: Venue, series: Series) -> bool:
        """Whether the silence after the last bar is too long to be accepted as it goes."""
        cursor = run.cursor
        slots = series.timeframe.count(cursor.last_ts, cursor.since_ms) - 1
        days = venue.clock.now_ms() - cursor.last_ts >= LONG_AGAIN_MS
        if not cursor.last_ts or slots < LONG_SLOTS or days:
            self.usual.pop(run.job.id, None)
            return False
        last_ts, usual = self.usual.get(run.job.id, (None, 0.0))
        if last_ts != cursor.last_ts:
            usual = (await asyncio.to_thread(Trading.of, venue.store, series)).rows_a_slot
            self.usual[run.job.id] = cursor.last_ts, usual
        return is_long(slots, usual)

    async def _look_back(self, run: JobRun, venue: Venue, series: Series) -> None:
        """The market trades again: what was accepted of its silence is requested once more."""
        silent = series.timeframe.count(run.cursor.last_ts, run.cursor.since_ms)
        limit = min(silent, venue.quirks.default_page)
        with suppress(NotServed):
            answer = await _asked(run, venue, series, silent, limit)
            await run.tried(partial(keep, venue, answer, fence=run.fence), begun=True)

    async def _keep(self, run: JobRun, venue: Venue, answer: BarsAnswer) -> None:
        """Makes durable what is new in the answer."""
        fence, known = self.latest.get(run.job.id, (None, None))
        ours = known is not None and fence in (run.fence, run.fence - 1)
        fresh = answer.without(known) if known is not None and ours else answer
        await run.tried(partial(keep, venue, fresh, fence=run.fence), begun=True)
        newest = answer.prepared.batch.take(slice(-LOOK_BACK_BARS, None))
        self.latest[run.job.id] = run.fence, newest

    async def _publish(self, run: JobRun, venue: Venue, answer: BarsAnswer, until_ms: int) -> None:
        """Hands over the bars behind the cursor. They are in the lake, so this must not fail."""
        if self.publisher is None:
            return
        from_ms, batch = run.cursor.since_ms, answer.prepared.batch
        new = batch.take((batch.ts >= from_ms) & (batch.ts < until_ms))
        await self.publisher.publish_closed(
            ClosedBars(
                answer.series,
                run.job.id,
                run.fence,
                from_ms,
                until_ms,
                published_ms(run.job),
                new,
                venue.server_clock.now_ms() / 1000,
            )
        )


async def _asked(run: JobRun, venue: Venue, series: Series, back: int, limit: int) -> BarsAnswer:
    """The bars from `back` bars before the cursor on."""
    accepted_ms = run.cursor.since_ms
    since_ms = series.timeframe.shift(accepted_ms, -back) if back else accepted_ms
    return await run.tried(lambda: ask(venue, series, since_ms, limit, accepted_ms=accepted_ms))


async def _skip(run: JobRun, series: Series, older: NotServed) -> None:
    """Goes on from the oldest bar that the venue serves."""
    cursor, frame = run.cursor, series.timeframe
    from_ms = max(frame.next_open(cursor.since_ms), frame.next_open(older.from_ms - 1))
    progress = with_missed(run, series, [Interval(cursor.since_ms, from_ms)])
    await run.commit(_at(cursor, from_ms), progress=progress)


def _at(cursor: Cursor, since_ms: int) -> Cursor:
    """There, with nothing to look back to."""
    return replace(cursor, since_ms=since_ms, page=0)


def _listened(
    run: JobRun, venue: Venue, answer: BarsAnswer
) -> tuple[BarsAnswer, Mapping[str, Any] | None]:
    """The answer with the silences it confirms, and the job's progress with the others.

    The progress is None when there is nothing to change in it.
    """
    now_ms, cursor = venue.server_clock.now_ms(), run.cursor
    earlier = silences.from_progress(run.progress.get("silences"))
    quiet = [each for each in answer.quiet if each.to_ms > cursor.since_ms]
    merged = silences.merged(earlier, quiet, now_ms)
    believed = silences.believed(merged, now_ms, LIVE_AGAIN_MS)
    answer = answer.also_covering(believed)
    still = silences.merged(merged, answer.quiet, now_ms)
    kept = silences.to_progress(still)
    if kept == (run.progress.get("silences") or []):
        return answer, None
    return answer, {**run.progress, "silences": kept}
