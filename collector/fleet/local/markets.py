"""Markets in the database, and the series that are kept of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from collector.markets.book import MarketBook
from collector.operations.market_list import market_page
from collector.operations.market_names import MarketNames
from collector.operations.series_cost import series_cost
from collector.operations.shown.connector import shown_connector
from collector.operations.shown.job import shown_job
from collector.operations.streams import add_series
from collector.operations.ticker_list import ticker_page

if TYPE_CHECKING:
    from collector.fleet.interface import Shown
    from collector.mongo.client import Database
    from collector.operations.streams import SeriesRequest


@dataclass(frozen=True, slots=True)
class LocalMarkets:
    database: Database

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
        return asdict(await series_cost(self.database, wanted))

    async def add(self, wanted: SeriesRequest) -> Shown:
        ensured, kept = await add_series(self.database, wanted, MarketNames(self.database))
        return {
            "connector": shown_connector(ensured.connector, self.database.server_clock.now_ms()),
            "connector_created": ensured.made,
            "created": [shown_job(job) for job, made in kept.jobs if made],
            "existing": [shown_job(job) for job, made in kept.jobs if not made],
            "notes": kept.notes,
            "symbols_known": kept.is_known,
        }
