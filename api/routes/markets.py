"""`/api/v1/markets`: what an exchange lists."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.markets import MarketPage, MarketsAsked, MarketsSearched, MarketView
from collector.operations.connectors import check_exchange
from collector.operations.market_list import market_page
from collector.operations.market_search import market_search
from collector.operations.shown.market import shown_market

router = APIRouter(prefix="/api/v1/markets", tags=["markets"])


@router.get("", summary="List an exchange's markets", dependencies=[VIEWER])
async def list_markets(asked: Annotated[MarketsAsked, Query()], parts: Parts) -> MarketPage:
    """By symbol, as last seen by a `markets_refresh`. Delisted ones stay, as inactive."""
    check_exchange(asked.exchange_id)
    filters = asked.model_dump(include={"base", "quote", "active"}, exclude_none=True)
    found = await market_page(
        parts.database,
        asked.exchange_id,
        filters,
        search=asked.search,
        after=asked.cursor,
        limit=asked.limit,
    )
    return MarketPage.model_validate(found)


@router.get("/search", summary="Search for markets", dependencies=[VIEWER])
async def search_markets(asked: Annotated[MarketsSearched, Query()], parts: Parts) -> MarketPage:
    """The likeliest first, of one exchange or of all whose markets are known. There are no further
    pages: give more letters.
    """
    if asked.exchange_id is not None:
        check_exchange(asked.exchange_id)
    found = await market_search(parts.database, asked.search, asked.exchange_id, limit=asked.limit)
    return MarketPage(
        items=[MarketView.model_validate(shown_market(each)) for each in found], next_cursor=None
    )
