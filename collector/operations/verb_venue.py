"""An exchange, opened for the length of one verb. Every request buys its token like a worker's.

One whose account allows one login is never opened by a verb: a worker holds its session.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.connectors.limiter import Limiter
from collector.errors import JobConflict
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.markets.book import MarketBook
from collector.operations import connected_jobs, connectors
from collector.operations.exchange_access import ExchangeAccess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from collector.exchanges.port import Exchange
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.settings import Settings

PATIENCE_SECONDS = 60.0
"""A user who waits for a report also waits for its tokens."""


@dataclass(frozen=True, slots=True)
class VerbVenue:
    """The exchange behind its connector, its markets known."""

    exchange: Exchange

    async def fetch(
        self, series: Series, since_ms: int, limit: int
    ) -> Sequence[Sequence[float | None]]:
        page = await self.exchange.fetch_bars(series.symbol, series.timeframe, since_ms, limit)
        return page.rows

    async def server_ms(self) -> int:
        return await self.exchange.server_ms()


@asynccontextmanager
async def opened_venue(
    database: Database, settings: Settings, exchange_id: str
) -> AsyncIterator[VerbVenue]:
    """Creates the connector when there is none: without one there are no tokens.

    SessionNotHeld for an exchange whose account allows one login.
    """
    await connectors.ensure(database, exchange_id)
    async with Limiter(database, use_global=settings.global_limit is not None) as limiter:
        access = ExchangeAccess.of(settings, database, limiter, PATIENCE_SECONDS)
        exchange, _ = await access.open(exchange_id)
        try:
            await _know_markets(database, exchange)
            yield VerbVenue(exchange)
        finally:
            await exchange.close()


async def have_compared(database: Database, exchange_id: str) -> None:
    """Has a worker compare stored bars with the exchange's: a `verify_source` job, now."""
    await connectors.ensure(database, exchange_id)
    compare = JobSpec(exchange_id, types.VERIFY_SOURCE.name)
    with suppress(JobConflict):  # It runs by now, or is paused.
        [(job, _)] = await connected_jobs.add(database, [compare])
        await connected_jobs.run(database, job.id)


async def _know_markets(database: Database, exchange: Exchange) -> None:
    book = MarketBook(database)
    markets = await book.load(exchange.id)
    if markets is not None:
        exchange.restore_markets(markets)
    else:
        await book.save(await exchange.load_markets())
