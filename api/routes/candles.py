"""`/api/v1/candles`: the bars themselves, streamed."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import StreamingResponse

from api.deps import Parts, Services
from api.problems import unprocessable
from api.roles import VIEWER
from api.row_stream import check_order, described, streamed
from api.schemas.fields import Moment, TimeframeName
from api.schemas.ranges import RangeAsked
from collector.market.candles import CANDLE_SCHEMA
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reader import DataReader

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
    await _check_series(asked, parts)
    reader = DataReader(asked.symbol, asked.timeframe, asked.exchange_id, root=parts.store)
    batches = reader.batches(asked.start, asked.end, gaps=asked.gaps, as_of=asked.as_of)
    return await streamed(batches, CANDLE_SCHEMA, asked.format)


async def _check_series(asked: CandlesAsked, parts: Services) -> None:
    """Refuses a series that cannot exist. One that is merely empty is an empty answer."""
    parts.desk.check_exchange(asked.exchange_id)
    try:
        Timeframe.parse(asked.timeframe)
    except ValueError as error:
        raise unprocessable("timeframe", "unknown_timeframe", str(error)) from error
    try:
        series = Series.of(asked.exchange_id, asked.symbol, asked.timeframe)
    except ValueError as error:
        raise unprocessable("symbol", "unknown_symbol", str(error)) from error
    if await asyncio.to_thread(parts.store.holds, series):
        return
    # Made of 1m bars when it was never stored, so any timeframe will do.
    await parts.desk.check_known_symbol(asked.exchange_id, asked.symbol, field="symbol")
