"""`/api/v1/candles`: the bars themselves, streamed."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import StreamingResponse

from api.deps import Parts
from api.roles import VIEWER
from api.row_stream import check_listed, check_order, described, streamed
from api.schemas.fields import Moment, TimeframeName
from api.schemas.ranges import RangeAsked
from collector.errors import InvalidInput
from collector.market.candles import CANDLE_SCHEMA
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.operations.connectors import check_exchange
from collector.reader import CandleReader

router = APIRouter(prefix="/api/v1/candles", tags=["candles"])


class CandlesAsked(RangeAsked):
    timeframe: TimeframeName
    as_of: Moment | None = Field(default=None, description="What was known at that moment")
    gaps: Literal["include", "omit"] = Field("include", description="Whether gap rows are sent")


_ROW = (1735689600000, 1.0, 2.0, 0.5, 1.5, 10.0, 15.0, 1, False, "binance", None)


@router.get(
    "",
    summary="Read candles",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=described("The bars, oldest first", CANDLE_SCHEMA, _ROW),
)
async def read_candles(asked: Annotated[CandlesAsked, Query()], parts: Parts) -> StreamingResponse:
    """The range `[start, end)` in UTC by opening time, streamed whatever its length.

    Never behind: bars that were stored a moment ago are in it. A connection that ends early means
    that the answer is not whole.
    """
    check_order(asked)
    _check_names(asked)
    reader = CandleReader(asked.symbol, asked.timeframe, asked.exchange_id, root=parts.store)
    if await asyncio.to_thread(reader.is_stored):
        whole = (asked.start, asked.end)
        batches = reader.batches_between(*whole, gaps=asked.gaps, as_of=asked.as_of)
    else:
        await check_listed(reader.not_stored, asked, parts)
        batches = iter(())
    return await streamed(
        batches,
        reader.schema,
        asked.format,
        limit=asked.limit,
        escape=asked.escape,
        file_name=asked.file_name(asked.timeframe),
    )


def _check_names(asked: CandlesAsked) -> None:
    """Refuses a series that cannot exist."""
    check_exchange(asked.exchange_id)
    try:
        Timeframe.parse(asked.timeframe)
    except ValueError as error:
        raise InvalidInput("timeframe", "unknown_timeframe", str(error)) from error
    try:
        Series.of(asked.exchange_id, asked.symbol, asked.timeframe)
    except ValueError as error:
        raise InvalidInput("symbol", "unknown_symbol", str(error)) from error
