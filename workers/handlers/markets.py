"""`markets_refresh`: what the exchange lists today, what became of the rest, what time it has."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import ExchangeUnavailable, NeedsOperator
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from workers.handlers.listings import Listings
    from workers.job_run import JobRun
    from workers.venues import Venues


@dataclass(frozen=True, slots=True)
class MarketsRefresh:
    """Requests every market, stores the answer in the book, and processes the changes in it.

    The job's `progress` shows the changes of its last run that had any.
    """

    venues: Venues
    listings: Listings

    async def __call__(self, run: JobRun) -> Outcome:
        run.check()
        venue = await self.venues.get(run.job.exchange_id)
        if venue.clock.is_due:
            # Not every exchange reports its time, and none has to.
            with suppress(NeedsOperator, ExchangeUnavailable):
                await venue.clock.measure(venue.exchange)
        await run.tried(lambda: self.venues.refresh(venue))
        changes = await self.listings.heed(run, venue)
        if changes:
            at_ms = venue.server_clock.now_ms()
            await run.commit(run.cursor, progress={"at_ms": at_ms, **changes})
        return Again()
