"""`gap_backfill`: one missing range, asked about until it is settled.

The job is deleted when nothing of its range is missing. An open silence is asked about again when
it is due (collector/pipeline/evidence.py); until then the job waits, and owns the range. For what
the venue no longer serves it stays, finished and with the reason, so that it is not requested over
and over. With `progress.recheck` the whole range is asked about, settled or not: an answer made it
doubtful.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.errors import BadRequest
from collector.jobs.unconfirmed import progress_with_silences
from collector.market.interval import Interval, subtract, with_bars
from collector.pipeline.evidence import LATEST_MS, SOONEST_MS
from workers.handlers.asking import series_of
from workers.handlers.fill import Fill
from workers.handlers.registry import Done, Later, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.series import Series
    from collector.pipeline.evidence import Silence
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues


@dataclass(frozen=True, slots=True)
class GapBackfill:
    """Asks about its range, and comes back for what is not settled."""

    venues: Venues

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        since_ms, until_ms = run.cursor.since_ms, run.cursor.until_ms
        if until_ms is None:
            raise BadRequest("a gap job needs cursor.since_ms and cursor.until_ms")
        if since_ms >= until_ms:
            return Done(vanish=True)
        stretch, rounds = Interval(since_ms, until_ms), int(run.progress.get("rounds") or 0)
        missing = await _missing(venue, series, stretch)
        if not run.progress.get("recheck"):
            if not missing:
                return Done(vanish=True)
            await run.commit(replace(run.cursor, since_ms=missing[0].from_ms))
        fill = Fill(run, venue, series, turn=rounds)
        await fill.run()
        missing = await _missing(venue, series, stretch)
        unserved = subtract(missing, subtract(missing, fill.unserved))
        left = subtract(missing, unserved)
        if left:
            silences = fill.inquiry.silences
            progress = {**progress_with_silences({}, silences), "rounds": rounds + 1}
            wait_ms = _wait_ms(left, silences, venue.server_clock.now_ms(), rounds)
            return Later(wait_ms, replace(run.cursor, since_ms=left[0].from_ms), progress)
        if unserved:
            why = {"not_served": [[each.from_ms, each.to_ms] for each in unserved]}
            return Done(cursor=replace(run.cursor, since_ms=since_ms), progress=why)
        return Done(vanish=True)


async def _missing(venue: Venue, series: Series, stretch: Interval) -> tuple[Interval, ...]:
    covered = await asyncio.to_thread(venue.store.covered, series)
    return with_bars(subtract([stretch], covered), series.timeframe)


def _wait_ms(
    left: Sequence[Interval], silences: Sequence[Silence], now_ms: int, rounds: int
) -> int:
    """Until the last of the silences is due; for what was not heard soon, and then after days."""
    unheard = subtract(left, [each.interval for each in silences])
    waits = [max(0, each.due_ms - now_ms) for each in silences]
    if unheard:
        waits.append(SOONEST_MS if rounds == 0 else LATEST_MS)
    return max(SOONEST_MS, min(max(waits, default=LATEST_MS), LATEST_MS))
