"""`tickers_snapshot`: the last price of every market of an exchange, in one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collector.connectors.ticker_board import TickerBoard
    from workers.job_run import JobRun
    from workers.venues import Venues


@dataclass(frozen=True, slots=True)
class TickersSnapshot:
    """Asks for all tickers and puts them on the board."""

    venues: Venues
    board: TickerBoard

    async def __call__(self, run: JobRun) -> Outcome:
        venue = await self.venues.with_markets(run.job.exchange_id)
        run.check()
        await self.board.save(run.job.exchange_id, await venue.exchange.fetch_tickers())
        return Again()
