"""`/api/v1/history`: events of networks in; rates, volumes and candles of their pairs out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import StreamingResponse

from api.deps import Parts, Services
from api.openapi import problems
from api.roles import OPERATOR, VIEWER
from api.row_coding import AcceptedCoding
from api.row_stream import described, streamed
from api.schemas.history import (
    CandleItems,
    CandlesOfPairAsked,
    EventsBody,
    NetworkName,
    PageAsked,
    PairAsked,
    PairPage,
    PairView,
    RateAsked,
    ReceiptView,
    SpotView,
    VolumeItems,
    VolumeView,
    VwapView,
)
from collector.errors import InvalidInput
from collector.history.known_pairs import known_pairs
from collector.history.reader import HistoryReader
from collector.history.refusal import FilledTooMuch, Refused
from collector.history.sources import BadEvent, PostedEvents
from collector.market.candles import CANDLE_SCHEMA
from collector.store.port import Corrupt, Swapped, Vanished

router = APIRouter(prefix="/api/v1/history", tags=["history"])

_ROW = (1735689600000, 1.0, 2.0, 0.5, 1.5, 10.0, 15.0, 1, False, "riemann", None)


@router.post(
    "/{network}/events",
    summary="Send events of a network",
    dependencies=[OPERATOR],
    status_code=202,
    responses=problems(422),
)
async def send_events(network: NetworkName, body: EventsBody, parts: Parts) -> ReceiptView:
    """Confirmed transactions and deletions, in order. All of them are accepted, or none.

    They are durable when this answers, and applied soon after: `?after=` of the other routes waits
    for that. Sending the same again is safe: a repetition is counted and changes nothing.
    """
    try:
        receipt = await parts.intake.take(network, PostedEvents(body.documents()))
    except BadEvent as error:
        raise InvalidInput(f"events.{error.at}", error.code, str(error)) from error
    return ReceiptView(
        sequence=receipt.sequence, accepted=receipt.accepted, duplicates=receipt.duplicates
    )


@router.get("/market-rate", summary="Read the rate of a pair", dependencies=[VIEWER])
async def market_rate(
    asked: Annotated[RateAsked, Query()], parts: Parts
) -> SpotView | VwapView | CandleItems:
    """`spot`: the last trade's price. `vwap`: the mean by volume. `ohlcv`: exact candles."""
    reader = await _reader(asked, parts)
    if asked.mode == "ohlcv":
        return CandleItems(**await _answered(reader.market_rate, asked, parts, "ohlcv", paged=True))
    if asked.mode == "vwap":
        return VwapView(**await _answered(reader.market_rate, asked, parts, "vwap"))
    return SpotView(**await _answered(reader.market_rate, asked, parts, "spot"))


@router.get("/volume", summary="Read the volume of a pair", dependencies=[VIEWER])
async def volume(asked: Annotated[PageAsked, Query()], parts: Parts) -> VolumeView | VolumeItems:
    """Sums of a range; with `bucket` those of each one that begins in it."""
    reader = await _reader(asked, parts)
    if asked.bucket is None:
        return VolumeView(**await _answered(reader.volume, asked, parts))
    return VolumeItems(**await _answered(reader.volume, asked, parts, paged=True))


@router.get(
    "/candles",
    summary="Read candles of a pair as floats",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=described("The candles, oldest first", CANDLE_SCHEMA, _ROW),
)
async def read_history_candles(
    asked: Annotated[CandlesOfPairAsked, Query()], parts: Parts, coding: AcceptedCoding
) -> StreamingResponse:
    """In the columns of every other candle, streamed; prices and amounts are divided by 10^18.

    Those that begin in the range. `/history/market-rate` gives the exact ones.
    """
    reader = await _reader(asked, parts)
    batches = reader.batches(asked.start, asked.end, bucket=asked.bucket, fill=asked.fill)
    async with _explained(asked.network, parts):
        return await streamed(batches, CANDLE_SCHEMA, asked.format, coding=coding)


@router.get("/pairs", summary="List the pairs that networks have traded", dependencies=[VIEWER])
async def list_pairs(parts: Parts) -> PairPage:
    """Of the networks in the settings, by network and pair."""
    items: list[PairView] = []
    unreadable: list[str] = []
    for network in parts.history.networks:
        storage, bucket_sec = parts.store.storage, parts.history.bucket_sec
        try:
            found = await asyncio.to_thread(known_pairs, storage, network, bucket_sec)
        except Corrupt as error:
            await parts.history_reads.damaged(network, error)
            unreadable.append(network)
        except (Swapped, Vanished):
            unreadable.append(network)
        else:
            items += PairView.all_of(found)
    return PairPage(items=items, unreadable=unreadable)


async def _reader(asked: PairAsked, parts: Services) -> HistoryReader:
    """The reader for the request, as soon as it includes the required events."""
    asked.check_order()
    reader = parts.history_reads.reader(asked.network, asked.base, asked.quote)
    if asked.after:
        await parts.history_reads.reach(asked.network, asked.after)
    return reader


async def _answered(
    question: Any,
    asked: PageAsked,
    parts: Services,
    mode: str | None = None,
    *,
    paged: bool = False,
) -> dict[str, Any]:
    page = {"fill": asked.fill, "limit": asked.limit, "cursor": asked.cursor} if paged else {}
    given = {"start": asked.start, "end": asked.end, "bucket": asked.bucket, **page}
    if mode is not None:
        given["mode"] = mode
    async with _explained(asked.network, parts):
        answer: dict[str, Any] = await asyncio.to_thread(question, **given)
    return answer


@asynccontextmanager
async def _explained(network: str, parts: Services) -> AsyncIterator[None]:
    """What only the files can tell: whether they are sound, and have buckets of that length."""
    try:
        yield
    except FilledTooMuch as error:
        raise InvalidInput("fill", error.code, str(error)) from error
    except Refused as error:
        raise InvalidInput("bucket", error.code, str(error)) from error
    except Corrupt as error:
        raise await parts.history_reads.damaged(network, error) from error
