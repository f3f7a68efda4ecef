"""An exchange, opened for the length of one verb. Every request buys its token like a worker's."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.connectors.gate import ConnectorPermit, GatedExchange
from collector.connectors.limiter import Limiter
from collector.connectors.market_book import MarketBook
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.exchanges.quirks import quirks_for
from collector.exchanges.registry import open_exchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from collector.exchanges.port import Exchange
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.settings import Settings

PATIENCE_SECONDS = 60.0
"""A person who waits for a report waits for its tokens, too."""


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
    """Makes the connector when there is none: without one there are no tokens."""
    registry = ConnectorRegistry(database)
    await registry.ensure(exchange_id, venue_limits(exchange_id))
    async with Limiter(database, use_global=settings.global_limit is not None) as limiter:
        permit = ConnectorPermit(
            limiter, registry, quirks_for(exchange_id), patience=PATIENCE_SECONDS
        )
        exchange = open_exchange(
            exchange_id,
            permit,
            urls=settings.addresses,
            clock=SystemClock(),
            timeout_ms=settings.api.timeout_ms,
            key=settings.keyring.credentials(exchange_id),
        )
        gated = GatedExchange(exchange, registry)
        try:
            await _know_markets(database, gated)
            yield VerbVenue(gated)
        finally:
            await gated.close()


async def _know_markets(database: Database, exchange: GatedExchange) -> None:
    book = MarketBook(database)
    markets = await book.load(exchange.id)
    if markets is not None:
        exchange.restore_markets(markets)
    else:
        await book.save(await exchange.load_markets())
