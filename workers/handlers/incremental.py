"""`ohlcv_incremental`: the bars that closed since the last run, usually one request."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workers.handlers.bars import ask, keep, series_of
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.market.candles import CandleBatch
    from workers.job_run import JobRun
    from workers.venues import Venues


LOOK_BACK_BARS = 3


@dataclass(frozen=True, slots=True)
class Incremental:
    """Asks from the cursor on, page after page when it has been away, until nothing is new.

    Every request but the first looks back a few bars: exchanges correct a bar in the moments after
    its close. What they say again unchanged is not written again, if this process remembers it.
    """

    venues: Venues
    told: dict[ObjectId, CandleBatch] = field(default_factory=dict)
    """The newest bars of each job, as they were last told."""

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await self.venues.with_markets(series.exchange_id, series.symbol)
        step = series.timeframe.ms
        while True:
            cursor = run.cursor
            closed = (venue.server_clock.now_ms() - cursor.since_ms) // step
            if closed < 1:
                return Again()
            run.check()
            back = LOOK_BACK_BARS if cursor.page else 0
            # One more than has closed: the venue's running bar shows that it is up to date.
            limit = min(back + closed + 1, venue.quirks.default_page)
            since_ms = cursor.since_ms - back * step
            answer = await ask(venue, series, since_ms, limit, settled_ms=cursor.since_ms)
            known = self.told.get(run.job.id)
            await keep(venue, answer if known is None else answer.without(known), fence=run.fence)
            self.told[run.job.id] = answer.prepared.batch.take(slice(-LOOK_BACK_BARS, None))
            moved = replace(
                cursor,
                since_ms=max(cursor.since_ms, answer.to_ms),
                last_ts=max(cursor.last_ts, answer.last_ts),
                page=cursor.page + 1,
            )
            caught_up = limit < venue.quirks.default_page or answer.to_ms <= cursor.since_ms
            if caught_up:
                # The finish writes the cursor too: one statement for the usual run.
                run.count(moved, pages=1, bars=answer.bars)
                return Again(cursor=moved)
            await run.commit(moved, pages=1, bars=answer.bars)
