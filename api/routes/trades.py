"""`/api/v1/trades`: the trades themselves, streamed."""

import asyncio
from collections.abc import Iterator
from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Query
from starlette.responses import StreamingResponse

from api.deps import Parts
from api.roles import VIEWER
from api.row_coding import AcceptedCoding, CodingName
from api.row_stream import StoredOfMarket, described, streamed
from api.schemas.ranges import RangeAsked
from collector.errors import NotFound
from collector.operations.stored_trades import TradesAsked, trade_stretch
from collector.store.trade_rows import TRADE_SCHEMA

router = APIRouter(prefix="/api/v1/trades", tags=["trades"])

_ROW = ("28457", 1735689600123, 93500.5, 0.012, "buy", 1735689660000)


@router.get(
    "",
    summary="Read trades",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=described("The trades, oldest first", TRADE_SCHEMA, _ROW),
)
async def read_trades(
    asked: Annotated[RangeAsked, Query()], parts: Parts, coding: AcceptedCoding
) -> StreamingResponse:
    """The range `[start, end)` in UTC, streamed whatever its length.

    As far as a `trades_incremental` job has collected them. A connection that ends early means that
    the answer is not whole.
    """
    asked.check()
    market = TradesAsked(asked.exchange_id, asked.symbol, asked.start, asked.end)
    try:
        stretch = await asyncio.to_thread(trade_stretch, parts.store, market)
    except NotFound as error:
        # One that cannot exist is refused; one without trades is an empty answer.
        symbol = await parts.desk.one_meant(asked.exchange_id, asked.symbol)
        await parts.desk.check_known_symbol(asked.exchange_id, symbol, field="symbol")
        return await _answered(asked, iter(()), coding, error)
    stored = StoredOfMarket(stretch.symbol, stretch.stored)
    return await _answered(asked, await asked.chosen(stretch), coding, stored)


async def _answered(
    asked: RangeAsked,
    batches: Iterator[pa.RecordBatch],
    coding: CodingName | None,
    stored: StoredOfMarket | NotFound,
) -> StreamingResponse:
    return await streamed(
        batches,
        TRADE_SCHEMA,
        asked.format,
        limit=asked.limit,
        escape=asked.escape,
        file_name=asked.file_name("trades"),
        coding=coding,
        stored=stored,
    )
