"""`/api/v1/tickers`: the last price of every market."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.tickers import TickerPage, TickersAsked
from collector.operations.ticker_list import ticker_page

router = APIRouter(prefix="/api/v1/tickers", tags=["tickers"])


@router.get("", summary="List the last prices", dependencies=[VIEWER])
async def list_tickers(asked: Annotated[TickersAsked, Query()], parts: Parts) -> TickerPage:
    """By symbol within an exchange, as the last `tickers_snapshot` received them."""
    found = await ticker_page(
        parts.database, asked.exchange_id, asked.symbol, after=asked.cursor, limit=asked.limit
    )
    return TickerPage.model_validate(found)
