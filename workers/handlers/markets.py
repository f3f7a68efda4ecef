"""`markets_refresh`: what the exchange lists today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from workers.job_run import JobRun
    from workers.venues import Venues


@dataclass(frozen=True, slots=True)
class MarketsRefresh:
    """Asks for every market and writes the answer into the book."""

    venues: Venues

    async def __call__(self, run: JobRun) -> Outcome:
        run.check()
        venue = await self.venues.get(run.job.exchange_id)
        await self.venues.book.save(await venue.exchange.load_markets())
        return Again()
