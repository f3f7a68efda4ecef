"""`/api/v1/tickers`: the last price of every market."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.tickers import TickerPage, TickersAsked, TickerView
from collector.operations.connectors import check_exchange

router = APIRouter(prefix="/api/v1/tickers", tags=["tickers"])


@router.get("", summary="List the last prices", dependencies=[VIEWER])
async def list_tickers(asked: Annotated[TickersAsked, Query()], parts: Parts) -> TickerPage:
    """By symbol within an exchange, as the last `tickers_snapshot` received them."""
    if asked.exchange_id is not None:
        check_exchange(asked.exchange_id)
    documents = await parts.board.page(
        asked.exchange_id, asked.symbol, after=asked.cursor, limit=asked.limit + 1
    )
    page = documents[: asked.limit]
    more = len(documents) > len(page)
    return TickerPage(
        items=[TickerView.of(document) for document in page],
        next_cursor=page[-1]["_id"] if more else None,
    )
