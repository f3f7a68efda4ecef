"""The last prices of an exchange by the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.markets.tickers import TickerBoard
from collector.operations.connectors import check_exchange
from collector.operations.market_names import MarketNames
from collector.operations.shown.market import shown_ticker

if TYPE_CHECKING:
    from collector.mongo.client import Database


async def ticker_page(
    database: Database,
    exchange_id: str | None,
    symbol: str | None,
    *,
    after: str | None = None,
    limit: int,
) -> dict[str, Any]:
    """By symbol within an exchange, as the last `tickers_snapshot` received them."""
    if exchange_id is not None:
        check_exchange(exchange_id)
        if symbol is not None:
            symbol = await MarketNames(database).one_meant(exchange_id, symbol)
    found = await TickerBoard(database).page(exchange_id, symbol, after=after, limit=limit + 1)
    page = found[:limit]
    more = page[-1]["_id"] if len(found) > limit else None
    return {"items": [shown_ticker(each) for each in page], "next_cursor": more}
