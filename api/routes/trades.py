"""`/api/v1/trades`: the trades themselves, streamed."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import StreamingResponse

from api.deps import Parts, Services
from api.roles import VIEWER
from api.row_stream import check_order, described, streamed
from api.schemas.ranges import RangeAsked
from collector.errors import InvalidInput
from collector.operations.connectors import check_exchange
from collector.store.trade_rows import TRADE_SCHEMA
from collector.store.trades import trade_batches, trade_days

router = APIRouter(prefix="/api/v1/trades", tags=["trades"])

_ROW = ("28457", 1735689600123, 93500.5, 0.012, "buy", 1735689660000)


@router.get(
    "",
    summary="Read trades",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=described("The trades, oldest first", TRADE_SCHEMA, _ROW),
)
async def read_trades(asked: Annotated[RangeAsked, Query()], parts: Parts) -> StreamingResponse:
    """The range `[start, end)` in UTC, streamed whatever its length.

    As far as a `trades_incremental` job has collected them. A connection that ends early means that
    the answer is not whole.
    """
    check_order(asked)
    await _check_market(asked, parts)
    batches = trade_batches(
        parts.store.storage, asked.exchange_id, asked.symbol, asked.start, asked.end
    )
    return await streamed(
        batches,
        TRADE_SCHEMA,
        asked.format,
        limit=asked.limit,
        escape=asked.escape,
        file_name=asked.file_name("trades"),
    )


async def _check_market(asked: RangeAsked, parts: Services) -> None:
    """Refuses a market that cannot exist. One without trades is an empty answer."""
    check_exchange(asked.exchange_id)
    market = (parts.store.storage, asked.exchange_id, asked.symbol)
    try:
        days = await asyncio.to_thread(trade_days, *market)
    except ValueError as error:
        raise InvalidInput("symbol", "unknown_symbol", str(error)) from error
    if not days:
        await parts.desk.check_known_symbol(asked.exchange_id, asked.symbol, field="symbol")
