"""The jobs that keep a lake in order: `compact`, `tail_refresh` and `full_scan`.

Each goes over the series of an exchange, one at a time, so that a drain waits for one of them and
not for all. All are safe to run twice, to die in, and beside any number of writers (see
docs/store-format.md). They ask no exchange anything and need no token.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.reports.coverage import coverage
from collector.reports.gap_rule import MAX_GAP_PCT, within_limit
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.store.store import Store
    from workers.handlers.gap_scan import GapScan
    from workers.job_run import JobRun


@dataclass(frozen=True, slots=True)
class Compact:
    """Merges parts into sealed files, where that is worth rewriting them, and gathers the rest."""

    store: Store
    gaps: GapScan
    max_gap_pct: float = MAX_GAP_PCT

    async def __call__(self, run: JobRun) -> Outcome:
        merged = []
        for series in await collected(self.store, run):
            run.check()
            if await asyncio.to_thread(self.store.is_due, series):
                await asyncio.to_thread(self.store.compact, series)
                await _judge(self.store, series, self.max_gap_pct)
                merged.append(series)
        await asyncio.to_thread(self.store.sweep, run.job.exchange_id)
        await asyncio.to_thread(self.store.gather, run.job.exchange_id)
        await self.gaps.scan(run, merged)
        return Again()


@dataclass(frozen=True, slots=True)
class TailRefresh:
    """Brings the tails up to date, for those who read files."""

    store: Store

    async def __call__(self, run: JobRun) -> Outcome:
        for series in await collected(self.store, run):
            run.check()
            await asyncio.to_thread(self.store.refresh_tail, series)
        return Again()


@dataclass(frozen=True, slots=True)
class FullScan:
    """Once a night: everything merged, every gap of any age looked for."""

    store: Store
    gaps: GapScan
    max_gap_pct: float = MAX_GAP_PCT

    async def __call__(self, run: JobRun) -> Outcome:
        found = await collected(self.store, run)
        for series in found:
            run.check()
            await asyncio.to_thread(self.store.compact, series)
            await _judge(self.store, series, self.max_gap_pct)
        await asyncio.to_thread(self.store.sweep, run.job.exchange_id)
        await self.gaps.scan(run, found, any_age=True)
        return Again()


async def _judge(store: Store, series: Series, max_gap_pct: float) -> None:
    """Tells the series' share of gaps, and warns when it is too great."""
    within_limit(await asyncio.to_thread(coverage, store, series), max_gap_pct)


async def collected(store: Store, run: JobRun) -> list[Series]:
    """The series of the exchange that were not made of others, in a fixed order."""

    def look() -> list[Series]:
        return [each for each in store.series(run.job.exchange_id) if store.holds(each)]

    return await asyncio.to_thread(look)
