"""`gap_scan`: finds the slots that no answer covers, and creates jobs that own them.

Gap jobs go before everything else an exchange has to do, are one for each stretch, and delete
themselves when the ledger is whole. Nothing counts as missing in a series with a damaged file.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs
from collector.durations import DAY_MS
from collector.jobs.fetching import owned
from collector.jobs.gap_jobs import gap_jobs, missing
from collector.jobs.live_series import collected_series
from collector.jobs.params import GapScanParams
from collector.market.series import Series
from collector.operations import connected_jobs
from collector.reports.expectations import expected_ranges
from workers.handlers.registry import Again, Outcome
from workers.handlers.sparing import Sparing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.jobs.job import JobSpec
    from collector.market.interval import Interval
    from collector.mongo.client import Database
    from collector.pipeline.evidence import Silence
    from collector.store.store import Store
    from workers.job_run import JobRun

SERIES_AT_ONCE = 200
"""This many are queried in one statement, right before they are needed."""
_log = logs.get("workers.gap_scan")


@dataclass(frozen=True, slots=True)
class GapScan:
    """Looks at the ledgers of an exchange, or of some of its series."""

    store: Store
    database: Database
    recovery_days: int = 7
    """Older gaps are left to the nightly scan."""

    async def __call__(self, run: JobRun) -> Outcome:
        # First, so that every look at a series finds few parts.
        await asyncio.to_thread(self.store.gather, run.job.exchange_id)
        stored = await asyncio.to_thread(self.store.series, run.job.exchange_id)
        await self.scan_all(run, stored, any_age=run.job.params_as(GapScanParams).any_age)
        return Again()

    async def scan_all(self, run: JobRun, stored: Sequence[Series], *, any_age: bool) -> None:
        """Looks at what is stored, and at what is collected and has lost all its files."""
        exchange_id = run.job.exchange_id
        live = await collected_series(self.database, exchange_id)
        series = dict.fromkeys([*stored, *(Series.of(exchange_id, *names) for names in live)])
        await self.scan(run, list(series), any_age=any_age)

    async def scan(
        self,
        run: JobRun,
        series: Sequence[Series],
        *,
        any_age: bool = False,
        whole: Interval | None = None,
        silences: Sequence[Silence] = (),
    ) -> None:
        """Makes the jobs that are missing for the missing slots of these series.

        `whole` is what was to be fetched of them, and is looked at from end to end; else what their
        jobs have left behind them. `silences` were heard there: their jobs wait until they are due.
        """
        young_ms = self.database.server_clock.now_ms() - self.recovery_days * DAY_MS
        after_ms = 0 if any_age else young_ms
        sparing = Sparing()
        for start in range(0, len(series), SERIES_AT_ONCE):
            some = series[start : start + SERIES_AT_ONCE]
            ranges = {} if whole else await expected_ranges(self.database, some)
            stretches = await owned(self.database, run.job.exchange_id, some)
            await asyncio.to_thread(self.store.list_parts, run.job.exchange_id)
            for each in some:
                run.check()
                taken = stretches.get((each.symbol, each.timeframe.name), ())
                with sparing.over(each):
                    await self._mend(
                        await asyncio.to_thread(
                            self._wanted, each, taken, after_ms, whole or ranges.get(each), silences
                        )
                    )
        sparing.finish()

    def _wanted(
        self,
        series: Series,
        taken: Sequence[Interval],
        after_ms: int,
        whole: Interval | None,
        silences: Sequence[Silence],
    ) -> tuple[JobSpec, ...]:
        holes = missing(self.store.covered(series, listed=True), taken, whole)
        return gap_jobs(series, holes, after_ms=after_ms, silences=silences)

    async def _mend(self, specs: Sequence[JobSpec]) -> None:
        for job, made in await connected_jobs.add(self.database, specs):
            if made:
                _log.info(
                    "gap_found",
                    exchange=job.exchange_id,
                    symbol=job.symbol,
                    timeframe=job.timeframe,
                    from_ms=job.cursor.since_ms,
                    to_ms=job.cursor.until_ms,
                )
