"""`gap_backfill`: one missing range, requested until it is covered.

The job is deleted when nothing of its range is missing. An empty answer is accepted when a later
run receives it again (collector/jobs/silences.py); until then the job waits, and owns the range.
For what the venue no longer serves it stays, finished and with the reason, so that it is not
requested over and over.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collector.errors import BadRequest
from collector.jobs import silences
from collector.jobs.silences import LONG_AGAIN_MS, SAME_AGAIN_MS, Silence
from collector.market.interval import Interval, clipped, subtract, unbroken, union, with_bars
from collector.pipeline.proof import is_long
from workers.handlers.bars import series_of
from workers.handlers.fill import Fill
from workers.handlers.registry import Done, Later, Outcome
from workers.handlers.trading import Trading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.series import Series
    from workers.handlers.bars import BarsAnswer
    from workers.job_run import JobRun
    from workers.venues import Venues


@dataclass(frozen=True, slots=True)
class GapBackfill:
    """Requests its range, and comes back for what is not covered."""

    venues: Venues

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        since_ms, until_ms = run.cursor.since_ms, run.cursor.until_ms
        if until_ms is None:
            raise BadRequest("a gap job needs cursor.since_ms and cursor.until_ms")
        if since_ms >= until_ms:
            return Done(vanish=True)
        stretch = Interval(since_ms, until_ms)
        trading = await asyncio.to_thread(Trading.of, venue.store, series)
        listening = SilenceJudge(
            series,
            stretch,
            venue.server_clock.now_ms(),
            silences.from_progress(run.progress.get("silences")),
            trading,
        )
        fill = Fill(run, venue, series, judged=listening.judged)
        await fill.to_the_end()
        covered = await asyncio.to_thread(venue.store.covered, series)
        missing = with_bars(subtract([stretch], covered), series.timeframe)
        unserved = _within(missing, fill.unserved)
        left = subtract(missing, unserved)
        if left:
            return _later(run, stretch, left, listening)
        if unserved:
            why = {"not_served": [[each.from_ms, each.to_ms] for each in unserved]}
            return Done(cursor=replace(run.cursor, since_ms=since_ms), progress=why)
        return Done(vanish=True)


@dataclass(slots=True)
class SilenceJudge:
    """Judges what the answers of one run report as empty."""

    series: Series
    stretch: Interval
    now_ms: int
    earlier: Sequence[Silence]
    trading: Trading
    still: list[Silence] = field(default_factory=list)
    """What was reported as empty and is not accepted yet."""

    def judged(self, answer: BarsAnswer) -> BarsAnswer:
        """The answer, covering only those of its empty ranges that were confirmed."""
        bars = unbroken(answer.prepared.batch.ts, self.series.timeframe)
        empty = subtract(clipped(answer.covered, self.stretch), bars)
        doubted = [each for each in empty if self._is_long(each)]
        quiet = [part for each in answer.quiet for part in _until(each, answer.edge_ms)]
        merged = silences.merged(
            self.earlier, clipped(union([*doubted, *quiet]), self.stretch), self.now_ms
        )
        believed = [each.stretch for each in merged if self._is_believed(each)]
        still = [each for each in merged if not self._is_believed(each)]
        self.still += still
        return answer.doubting(each.stretch for each in still).also_covering(believed)

    def _is_believed(self, silence: Silence) -> bool:
        wait = LONG_AGAIN_MS if self._is_long(silence.stretch) else SAME_AGAIN_MS
        return self.now_ms - silence.first_ms >= wait

    def _is_long(self, stretch: Interval) -> bool:
        """As a part of the whole silence: pages cut it into pieces."""
        around = union([stretch, *(each.stretch for each in self.earlier)])
        whole = next(each for each in around if each.overlaps(stretch))
        slots = self.series.timeframe.count(whole.from_ms, whole.to_ms)
        return is_long(slots, self.trading.rows_a_slot) and self.trading.goes_on_around(whole)


def _later(
    run: JobRun, stretch: Interval, left: Sequence[Interval], listening: SilenceJudge
) -> Later:
    """Comes back for what is left: soon after the first time, then after days."""
    rounds = int(run.progress.get("rounds") or 0)
    rest = Interval(left[0].from_ms, stretch.to_ms)
    progress: dict[str, Any] = {
        "silences": silences.to_progress(listening.still),
        "rounds": rounds + 1,
        "ahead": [[each.from_ms, each.to_ms] for each in subtract([rest], left)],
    }
    waits = [SAME_AGAIN_MS if rounds == 0 else LONG_AGAIN_MS]
    if listening.still:
        waits.append(silences.asked_again_in_ms(listening.still, listening.now_ms))
    return Later(min(waits), replace(run.cursor, since_ms=rest.from_ms), progress)


def _within(stretches: Sequence[Interval], others: Sequence[Interval]) -> tuple[Interval, ...]:
    """The parts of `stretches` that lie in `others`."""
    return subtract(stretches, subtract(stretches, others))


def _until(stretch: Interval, to_ms: int) -> tuple[Interval, ...]:
    end_ms = min(stretch.to_ms, to_ms)
    return (Interval(stretch.from_ms, end_ms),) if stretch.from_ms < end_ms else ()
