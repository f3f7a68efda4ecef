"""`/api/v1/candles`: the bars themselves, streamed."""

import asyncio
from itertools import chain
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import StreamingResponse

from api.candle_formats import MEDIA_TYPES, Format, encode
from api.deps import Parts, Services
from api.problems import unprocessable
from api.roles import VIEWER
from api.schemas.fields import Asked, ExchangeId, Moment, Symbol, TimeframeName
from collector.market.candles import CANDLE_SCHEMA
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reader import DataReader

router = APIRouter(prefix="/api/v1/candles", tags=["candles"])


class CandlesAsked(Asked):
    exchange_id: ExchangeId
    symbol: Symbol
    timeframe: TimeframeName
    start: Moment | None = Field(default=None, description="First opening time; default: the first")
    end: Moment | None = Field(
        default=None,
        description="Opening times before it; default: all",
        examples=["2025-02-01T00:00:00Z", 1738368000000],
    )
    as_of: Moment | None = Field(default=None, description="What was known at that moment")
    format: Format = "json"
    gaps: Literal["include", "omit"] = Field("include", description="Whether gap rows are sent")


_ROW = {"type": "array", "items": {}}
_JSON = {
    "schema": {
        "type": "object",
        "required": ["columns", "rows"],
        "properties": {
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": _ROW},
        },
    },
    "example": {
        "columns": CANDLE_SCHEMA.names,
        "rows": [[1735689600000, 1.0, 2.0, 0.5, 1.5, 10.0, 15.0, 1, False, "binance", None]],
    },
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bars, oldest first",
        "content": {
            "application/json": _JSON,
            "text/csv": {"schema": {"type": "string"}},
            MEDIA_TYPES["arrow"]: _BINARY,
            MEDIA_TYPES["parquet"]: _BINARY,
        },
    }
}


@router.get(
    "",
    summary="Read candles",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=_CONTENT,
)
async def read_candles(asked: Annotated[CandlesAsked, Query()], parts: Parts) -> StreamingResponse:
    """The range `[start, end)` in UTC by opening time, streamed whatever its length.

    Never behind: bars that were stored a moment ago are in it. A connection that ends early means
    that the answer is not whole.
    """
    if asked.start is not None and asked.end is not None and asked.end <= asked.start:
        raise unprocessable("end", "end_before_start", "end must be after start")
    await _check_series(asked, parts)
    reader = DataReader(asked.symbol, asked.timeframe, asked.exchange_id, root=parts.store)
    batches = reader.batches(asked.start, asked.end, gaps=asked.gaps, as_of=asked.as_of)
    pieces = encode(batches, asked.format)
    # The first piece before the status line: what fails, fails with a problem and not half-way.
    first = await asyncio.to_thread(next, pieces)
    return StreamingResponse(chain([first], pieces), media_type=MEDIA_TYPES[asked.format])


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
    if await parts.book.page(asked.exchange_id, limit=1):
        # Made of 1m bars when it was never stored, so any timeframe will do.
        await parts.desk.check_symbol(asked.exchange_id, asked.symbol, field="symbol")
