"""The jobs that keep a lake in order: `compact`, `tail_refresh` and `full_scan`.

Each goes over the series of an exchange, one at a time, so that a drain waits for one of them and
not for all. All are safe to run twice, to die in, and beside any number of writers (see
docs/store-format.md). A series with a damaged file is left out. They send no requests and need no
token.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.reports.coverage import coverage
from collector.reports.expectations import expectations
from collector.reports.gap_rule import MAX_GAP_PCT, within_limit
from collector.store.port import Corrupt, Unavailable
from collector.store.trades import settle_trades
from workers.handlers.merging import merged
from workers.handlers.registry import Again, Outcome
from workers.handlers.sparing import Sparing

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
        # First, so that every look at a series finds few parts.
        await asyncio.to_thread(self.store.gather, run.job.exchange_id)
        sparing, rewritten = Sparing(), []
        for series in await collected(self.store, run):
            run.check()
            with sparing.over(series):
                if await asyncio.to_thread(self.store.is_due, series, listed=True):
                    await merged(self.store.compact, series)
                    await _judge(self.gaps, series, self.max_gap_pct)
                    rewritten.append(series)
        await asyncio.to_thread(self.store.sweep, run.job.exchange_id)
        await self.gaps.scan(run, rewritten)
        sparing.finish()
        return Again()


@dataclass(frozen=True, slots=True)
class TailRefresh:
    """Brings the tails up to date, for those who read files."""

    store: Store

    async def __call__(self, run: JobRun) -> Outcome:
        sparing = Sparing()
        for series in await collected(self.store, run):
            run.check()
            with sparing.over(series):
                await asyncio.to_thread(self.store.refresh_tail, series)
        sparing.finish()
        return Again()


@dataclass(frozen=True, slots=True)
class FullScan:
    """Once a night: everything merged, every gap of any age looked for."""

    store: Store
    gaps: GapScan
    max_gap_pct: float = MAX_GAP_PCT

    async def __call__(self, run: JobRun) -> Outcome:
        await asyncio.to_thread(self.store.gather, run.job.exchange_id)
        sparing, found = Sparing(), await collected(self.store, run)
        for series in found:
            run.check()
            with sparing.over(series):
                await merged(self.store.compact, series)
                await _judge(self.gaps, series, self.max_gap_pct)
        await asyncio.to_thread(self.store.sweep, run.job.exchange_id)
        now_ms = self.gaps.database.server_clock.now_ms()
        await asyncio.to_thread(settle_trades, self.store.storage, run.job.exchange_id, now_ms)
        await self.gaps.scan_all(run, found, any_age=True)
        sparing.finish()
        return Again()


async def _judge(gaps: GapScan, series: Series, max_gap_pct: float) -> None:
    """Measures the series' share of gaps, head and tail among them; warns of too great a one."""
    now_ms = gaps.database.server_clock.now_ms()
    expected = await expectations(gaps.database, [series], now_ms)
    counted = await asyncio.to_thread(coverage, gaps.store, series, expected[series])
    within_limit(counted, max_gap_pct)


async def collected(store: Store, run: JobRun) -> list[Series]:
    """The series of the exchange that were not made of others, in a fixed order.

    Those with a damaged file are among them: the damage shows when one is read.
    """

    def holds(series: Series) -> bool:
        try:
            return store.holds(series, listed=True)
        except (Corrupt, Unavailable):
            return True

    def look() -> list[Series]:
        return [each for each in store.series(run.job.exchange_id) if holds(each)]

    return await asyncio.to_thread(look)
