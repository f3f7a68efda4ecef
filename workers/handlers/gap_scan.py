"""`gap_scan`: finds the slots that nobody has an answer for, and makes jobs that own them.

Gap jobs go before everything else an exchange has to do, are one for each stretch, and delete
themselves when the ledger is whole.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs
from collector.jobs.gap_jobs import gap_jobs, missing, owned_by
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.jobs.queue import JobQueue
    from collector.market.series import Series
    from collector.mongo.server_clock import ServerClock
    from collector.store.store import Store
    from workers.job_run import JobRun

DAY_MS = 86_400_000
_log = logs.get("workers.gap_scan")


@dataclass(frozen=True, slots=True)
class GapScan:
    """Looks at the ledgers of an exchange, or of some of its series."""

    store: Store
    queue: JobQueue
    server_clock: ServerClock
    recovery_days: int = 7
    """Older gaps are left to the nightly scan."""

    async def __call__(self, run: JobRun) -> Outcome:
        series = await asyncio.to_thread(self.store.series, run.job.exchange_id)
        await self.scan(run, series, any_age=bool(run.job.params.get("any_age")))
        return Again()

    async def scan(self, run: JobRun, series: Sequence[Series], *, any_age: bool = False) -> None:
        """Makes the jobs that are missing for the missing slots of these series."""
        if not series:
            return
        owned = owned_by(await self.queue.fetching(run.job.exchange_id))
        young_ms = self.server_clock.now_ms() - self.recovery_days * DAY_MS
        for each in series:
            run.check()
            covered = await asyncio.to_thread(self.store.covered, each)
            holes = missing(covered, owned.get((each.symbol, each.timeframe.name), ()))
            for spec in gap_jobs(each, holes, after_ms=0 if any_age else young_ms):
                _, made = await self.queue.add(spec)
                if made:
                    _log.info(
                        "gap_found",
                        exchange=each.exchange_id,
                        symbol=each.symbol,
                        timeframe=each.timeframe.name,
                        from_ms=spec.cursor.since_ms,
                        to_ms=spec.cursor.until_ms,
                    )
