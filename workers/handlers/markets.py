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
    """Asks for every market, writes the answer into the book, and acts on what is news in it.

    The job's `progress` shows the news of its last run that had any.
    """

    venues: Venues
    listings: Listings

    async def __call__(self, run: JobRun) -> Outcome:
        run.check()
        venue = await self.venues.get(run.job.exchange_id)
        if venue.clock.is_due:
            # Not every exchange tells its time, and none has to.
            with suppress(NeedsOperator, ExchangeUnavailable):
                await venue.clock.measure(venue.exchange)
        await self.venues.refresh(venue)
        news = await self.listings.heed(run, venue)
        if news:
            at_ms = venue.server_clock.now_ms()
            await run.commit(run.cursor, progress={"at_ms": at_ms, **news})
        return Again()
