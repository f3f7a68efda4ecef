"""`/api/v1/markets`: what an exchange lists."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.markets import MarketPage, MarketsAsked, MarketsSearched, MarketView
from collector.operations.connectors import check_exchange
from collector.operations.market_search import market_search

router = APIRouter(prefix="/api/v1/markets", tags=["markets"])


@router.get("", summary="List an exchange's markets", dependencies=[VIEWER])
async def list_markets(asked: Annotated[MarketsAsked, Query()], parts: Parts) -> MarketPage:
    """By symbol, as last seen by a `markets_refresh`. Delisted ones stay, as inactive."""
    check_exchange(asked.exchange_id)
    filters = asked.model_dump(include={"base", "quote", "active"}, exclude_none=True)
    documents = await parts.book.page(
        asked.exchange_id, filters, after=asked.cursor, limit=asked.limit + 1
    )
    page = [MarketView.of(document) for document in documents[: asked.limit]]
    more = len(documents) > len(page)
    return MarketPage(items=page, next_cursor=page[-1].symbol if more else None)


@router.get("/search", summary="Search for markets", dependencies=[VIEWER])
async def search_markets(asked: Annotated[MarketsSearched, Query()], parts: Parts) -> MarketPage:
    """The likeliest first, of one exchange or of all whose markets are known. There are no further
    pages: give more letters.
    """
    if asked.exchange_id is not None:
        check_exchange(asked.exchange_id)
    found = await market_search(parts.database, asked.search, asked.exchange_id, limit=asked.limit)
    return MarketPage(items=[MarketView.of(each) for each in found], next_cursor=None)
