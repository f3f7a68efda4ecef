"""`compact`: merges the parts of an exchange's series into their sealed files.

Safe to run twice, to die in, and beside any number of writers (see docs/store-format.md). It asks
no exchange anything and needs no token.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collector.store.store import Store
    from workers.job_run import JobRun


@dataclass(frozen=True, slots=True)
class Compact:
    """Series by series, so that a drain waits for one of them and not for all."""

    store: Store

    async def __call__(self, run: JobRun) -> Outcome:
        exchange_id = run.job.exchange_id
        for series in await asyncio.to_thread(self.store.series, exchange_id):
            run.check()
            await asyncio.to_thread(self.store.compact, series)
        await asyncio.to_thread(self.store.sweep, exchange_id)
        return Again()
