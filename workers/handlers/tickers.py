"""`tickers_snapshot`: the last price of every market of an exchange, in one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collector.markets.tickers import TickerBoard
    from workers.job_run import JobRun
    from workers.venues import Venues


@dataclass(frozen=True, slots=True)
class TickersSnapshot:
    """Requests all tickers and stores them."""

    venues: Venues
    board: TickerBoard

    async def __call__(self, run: JobRun) -> Outcome:
        venue = await run.tried(lambda: self.venues.with_markets(run.job.exchange_id))
        tickers = await run.tried(venue.exchange.fetch_tickers)
        await self.board.save(run.job.exchange_id, tickers)
        return Again()
