"""`/api/v1/candles`: the bars themselves, streamed."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Literal

import pyarrow as pa
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import StreamingResponse

from api.deps import Parts
from api.roles import VIEWER
from api.row_coding import AcceptedCoding, CodingName
from api.row_stream import StoredOfMarket, check_listed, described, streamed
from api.schemas.fields import Moment, TimeframeName
from api.schemas.ranges import RangeAsked
from collector.errors import NotStored
from collector.market.candles import CANDLE_SCHEMA
from collector.operations.connectors import check_exchange
from collector.operations.stored_candles import CandlesAsked, candle_stretch
from collector.reader import CandleReader

router = APIRouter(prefix="/api/v1/candles", tags=["candles"])


class CandleQuery(RangeAsked):
    timeframe: TimeframeName
    as_of: Moment | None = Field(default=None, description="What was known at that moment")
    gaps: Literal["include", "omit"] = Field("include", description="Whether gap rows are sent")

    def asked(self) -> CandlesAsked:
        series = (self.exchange_id, self.symbol, self.timeframe)
        return CandlesAsked(*series, self.start, self.end, self.gaps, self.as_of)


_ROW = (1735689600000, 1.0, 2.0, 0.5, 1.5, 10.0, 15.0, 1, False, "binance", None)


@router.get(
    "",
    summary="Read candles",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=described("The bars, oldest first", CANDLE_SCHEMA, _ROW),
)
async def read_candles(
    asked: Annotated[CandleQuery, Query()], parts: Parts, coding: AcceptedCoding
) -> StreamingResponse:
    """The range `[start, end)` in UTC by opening time, streamed whatever its length.

    Never behind: bars that were stored a moment ago are in it. A connection that ends early means
    that the answer is not whole.
    """
    asked.check()
    check_exchange(asked.exchange_id)
    try:
        stretch = await asyncio.to_thread(candle_stretch, parts.store, asked.asked())
    except NotStored as error:
        await check_listed(error, asked, parts)
        reader = CandleReader(asked.symbol, asked.timeframe, asked.exchange_id, root=parts.store)
        return await _answered(asked, iter(()), reader.schema, coding, error)
    batches = await asked.chosen(stretch)
    stored = StoredOfMarket(stretch.reader.series.symbol, stretch.stored)
    return await _answered(asked, batches, stretch.reader.schema, coding, stored)


async def _answered(
    asked: CandleQuery,
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    coding: CodingName | None,
    stored: StoredOfMarket | NotStored,
) -> StreamingResponse:
    return await streamed(
        batches,
        schema,
        asked.format,
        limit=asked.limit,
        escape=asked.escape,
        file_name=asked.file_name(asked.timeframe),
        coding=coding,
        stored=stored,
    )
