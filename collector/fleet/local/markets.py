"""Markets in the database, and the series that are kept of them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import NotFound
from collector.markets.book import MarketBook
from collector.operations.exchange_access import ExchangeAccess
from collector.operations.market_desk import PATIENCE_SECONDS, MarketDesk
from collector.operations.market_list import market_page
from collector.operations.market_names import MarketNames
from collector.operations.meant_symbol import is_pattern
from collector.operations.shown.connector import shown_connector
from collector.operations.shown.job import shown_job
from collector.operations.streams import add_series, estimate_series
from collector.operations.ticker_list import ticker_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.fleet.interface import Shown
    from collector.mongo.client import Database
    from collector.operations.streams import SeriesRequest
    from collector.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalMarkets:
    database: Database
    settings: Settings

    async def page(
        self,
        exchange_id: str,
        *,
        search: str | None = None,
        active: bool | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Shown:
        filters = {} if active is None else {"active": active}
        return await market_page(
            self.database, exchange_id, filters, search=search, after=cursor, limit=limit
        )

    async def symbols(self, exchange_id: str) -> list[str]:
        return await MarketBook(self.database).symbols(exchange_id)

    async def tickers(
        self, exchange_id: str, symbol: str | None, limit: int, cursor: str | None = None
    ) -> Shown:
        return await ticker_page(self.database, exchange_id, symbol, after=cursor, limit=limit)

    async def estimate(self, wanted: SeriesRequest) -> Shown:
        async with self._names(wanted) as names:
            return asdict(await estimate_series(self.database, wanted, names))

    async def add(self, wanted: SeriesRequest) -> Shown:
        async with self._names(wanted) as names:
            ensured, kept = await add_series(self.database, wanted, names)
        return {
            "connector": shown_connector(ensured.connector, self.database.server_clock.now_ms()),
            "connector_created": ensured.made,
            "created": [shown_job(job) for job, made in kept.jobs if made],
            "existing": [shown_job(job) for job, made in kept.jobs if not made],
            "notes": kept.notes,
            "symbols_known": kept.is_known,
        }

    @asynccontextmanager
    async def _names(self, wanted: SeriesRequest) -> AsyncIterator[MarketNames]:
        """A pattern needs the markets: they are asked for when nobody knows them yet."""
        if not any(map(is_pattern, wanted.symbols)) or not await self._is_connected(wanted):
            yield MarketNames(self.database)
            return
        shared = self.settings.global_limit is not None
        async with Limiter(self.database, use_global=shared) as limiter:
            access = ExchangeAccess.of(self.settings, self.database, limiter, PATIENCE_SECONDS)
            desk = MarketDesk(self.database, access)
            try:
                yield desk
            finally:
                await desk.close()

    async def _is_connected(self, wanted: SeriesRequest) -> bool:
        try:
            await ConnectorRegistry(self.database).get(wanted.exchange_id)
        except NotFound:
            return False
        return True
