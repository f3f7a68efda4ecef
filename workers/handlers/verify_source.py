"""`verify_source`: random bars of every series, compared with what the exchange serves today.

Its answers are evidence like any other (collector/pipeline/evidence.py): a difference is asked
about again, and what two answers agree on is stored. A bar that should be removed is reported. When
more than one of the samples differs, a job that yields to all others asks about the whole series.

Two hundred bars of a long series are two hundred requests, more than many a budget has at once. So
the random seed of the choice is stored, and a run that is out of tokens stops between two requests;
the next one, on any worker, continues there.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from collector import logs
from collector.errors import BadRequest, NotServed
from collector.jobs.fetching import owned
from collector.jobs.gap_jobs import gap_jobs
from collector.jobs.job import Cursor
from collector.jobs.schedule import Once
from collector.market.bar_rows import rows_of
from collector.market.candles import CandleBatch
from collector.market.interval import Interval, subtract
from collector.market.timeframe import Timeframe
from collector.operations import connected_jobs
from collector.reports.check import Check
from collector.reports.source_check import Sample, neighbours
from collector.store.port import Corrupt
from workers.handlers.asking import Inquiry
from workers.handlers.registry import Again, Done, Outcome
from workers.handlers.sparing import note_damage
from workers.handlers.upkeep import collected

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.market.series import Series
    from collector.reports.source_reports import SourceReports
    from collector.store.store import Store
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

BEHIND_ALL = 1_000
"""The priority of a job that asks about a whole series: nothing has to wait for it."""
_log = logs.get("workers.verify_source")


@dataclass(slots=True)
class Comparison:
    """One series under comparison, as the job's `progress.comparing` keeps it between runs."""

    series: list[str]
    seed: int
    from_ms: int
    to_ms: int
    compared: int = 0
    check: Check = field(default_factory=Check)

    def sample(self, series: Series, size: int) -> Sample:
        span = Interval(self.from_ms, self.to_ms)
        return Sample(span, series.timeframe, size, random.Random(self.seed))


@dataclass(frozen=True, slots=True)
class VerifySource:
    """Goes over the series in a fixed order."""

    venues: Venues
    store: Store
    reports: SourceReports
    samples: int

    async def __call__(self, run: JobRun) -> Outcome:
        venue = await run.tried(lambda: self.venues.with_markets(run.job.exchange_id))
        for series in await collected(self.store, run):
            if not _is_done(series, run.progress.get("after")):
                run.check()
                await self._verify(run, venue, series)
        counted = run.progress.get("counted") or {}
        await run.commit(Cursor(), progress={"last": counted})
        once = isinstance(run.job.schedule, Once)
        return Done(cursor=Cursor(done=True)) if once else Again(cursor=Cursor())

    async def _verify(self, run: JobRun, venue: Venue, series: Series) -> None:
        comparison = None
        try:
            comparison = await self._begun(run, series)
            if comparison is not None:
                await self._compare(run, venue, series, comparison)
        except BadRequest as error:
            # Gone from the exchange: there is nothing to compare with.
            _log.info("source_unknown", series=str(series), error=str(error))
        except Corrupt as error:
            note_damage(series, error)
        if comparison is not None:
            await self.reports.write(series, comparison.check, compared=comparison.compared)
            if not comparison.check.ok:
                _warn(series, comparison)
            if comparison.check.count > 1:
                await _ask_about_all(venue, series, comparison)
        await run.commit(
            Cursor(page=run.cursor.page),
            progress={"after": _name(series), "counted": _counted(run, comparison)},
        )

    async def _begun(self, run: JobRun, series: Series) -> Comparison | None:
        """The comparison that an earlier run left, or a new one; None for a series without bars."""
        left = run.progress.get("comparing")
        if left is not None and left["series"] == _name(series):
            return Comparison(**{**left, "check": Check(**left["check"])})
        span = await asyncio.to_thread(self.store.span, series)
        if span is None:
            return None
        return Comparison(_name(series), random.getrandbits(32), span.from_ms, span.to_ms)

    async def _compare(
        self, run: JobRun, venue: Venue, series: Series, comparison: Comparison
    ) -> None:
        sample, frame = comparison.sample(series, self.samples), series.timeframe
        inquiry = Inquiry(run, venue, series)
        await inquiry.begin(Interval(comparison.from_ms, comparison.to_ms))
        for near in neighbours(sample.wanted, frame.ms):
            if near[0] < run.cursor.since_ms:
                continue
            end_ms = frame.end(near[-1])
            stored = await asyncio.to_thread(self.store.rows, series, near[0], end_ms)
            sample.add(stored)
            held = sample.held(near)
            if held:
                await _compare_with(inquiry, comparison, sample, held, stored)
            moved = replace(run.cursor, since_ms=end_ms, page=run.cursor.page + 1)
            progress = {**run.progress, "comparing": asdict(comparison)}
            await run.commit(moved, pages=1, progress=progress)


async def _compare_with(
    inquiry: Inquiry, comparison: Comparison, sample: Sample, times: list[int], stored: pa.Table
) -> None:
    """Asks about some slots. What the rule makes of the answers is compared with what is stored."""
    try:
        verdict = await inquiry.about(Interval(times[0], inquiry.frame.end(times[-1])))
    except NotServed:
        return  # The exchange keeps only its newest bars: these cannot be compared.
    await inquiry.make_doubt_jobs()
    gone = set(verdict.removed)
    bars = CandleBatch.from_arrow(stored)
    kept = [row for row in rows_of(bars.take(~bars.filler)) if row[0] not in gone]
    sample.judge(comparison.check, times, [*kept, *rows_of(verdict.bars)])
    comparison.compared += len(times)


async def _ask_about_all(venue: Venue, series: Series, comparison: Comparison) -> None:
    """Makes the job that asks about the series, without what other jobs have still to fetch."""
    taken = await owned(venue.database, series.exchange_id, [series])
    span = Interval(comparison.from_ms, comparison.to_ms)
    parts = subtract([span], taken.get((series.symbol, series.timeframe.name), ()))
    jobs = [
        replace(job, priority=BEHIND_ALL, params={"priority": False}, progress={"recheck": 1})
        for part in parts
        for job in gap_jobs(series, [part])
    ]
    if jobs:
        await connected_jobs.add(venue.database, jobs)


def _name(series: Series) -> list[str]:
    return [series.symbol, series.timeframe.name]


def _is_done(series: Series, after: list[str] | None) -> bool:
    if after is None:
        return False
    symbol, timeframe = after
    return (series.symbol, series.timeframe) <= (symbol, Timeframe.parse(timeframe))


def _counted(run: JobRun, comparison: Comparison | None) -> dict[str, int]:
    """What the progress of the job shows: how much was looked at so far, and how much differs."""
    before = run.progress.get("counted") or {"series": 0, "compared": 0, "different": 0}
    if comparison is None:
        return before
    return {
        "series": before["series"] + 1,
        "compared": before["compared"] + comparison.compared,
        "different": before["different"] + comparison.check.count,
    }


def _warn(series: Series, comparison: Comparison) -> None:
    _log.warning(
        "source_differs",
        exchange=series.exchange_id,
        symbol=series.symbol,
        timeframe=series.timeframe.name,
        compared=comparison.compared,
        different=comparison.check.count,
        examples=comparison.check.examples,
    )
