"""`/api/v1/live`: the last prices, heartbeats and market states of streams."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.live import LiveAsked, LivePage, LiveView
from collector.operations.connectors import check_exchange
from collector.operations.market_names import MarketNames

router = APIRouter(prefix="/api/v1/live", tags=["live"])


@router.get("", summary="Read the last state of streams", dependencies=[VIEWER])
async def list_live(asked: Annotated[LiveAsked, Query()], parts: Parts) -> LivePage:
    """What `GET /events` sends as `price`, `heartbeat` and `market_status`, as it is now."""
    symbol = asked.symbol
    if asked.exchange_id is not None:
        check_exchange(asked.exchange_id)
        if symbol is not None:
            symbol = await MarketNames(parts.database).one_meant(asked.exchange_id, symbol)
    documents = await parts.live.page(
        kind=asked.kind,
        exchange_id=asked.exchange_id,
        symbol=symbol,
        after=asked.cursor,
        limit=asked.limit + 1,
    )
    page = documents[: asked.limit]
    more = len(documents) > len(page)
    return LivePage(
        items=[LiveView.of(document) for document in page],
        next_cursor=page[-1]["_id"] if more else None,
    )
