"""Markets of an exchange by the page, found by what their symbols look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.markets.book import MarketBook
from collector.operations.meant_symbol import searched
from collector.operations.shown.market import shown_market

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.mongo.client import Database


async def market_page(
    database: Database,
    exchange_id: str,
    filters: Mapping[str, str | bool],
    *,
    search: str | None = None,
    after: str | None = None,
    limit: int,
) -> dict[str, Any]:
    """By symbol, as last seen. `search` is a pattern, or letters that the symbol has in it."""
    book = MarketBook(database)
    if search is None:
        found = await book.page(exchange_id, filters, after=after, limit=limit + 1)
    else:
        symbols = searched(search, await book.symbols(exchange_id))
        later = [each for each in symbols if after is None or each > after]
        found = await book.named(exchange_id, filters, later, limit=limit + 1)
    page = [shown_market(document) for document in found[:limit]]
    more = page[-1]["symbol"] if len(found) > limit else None
    return {"items": page, "next_cursor": more}
