"""The `live` collection: the last state of every stream, for clients that connect late.

One document for each price, one an exchange for its heartbeat and one for its market status, all
replaced in place. A document carries the fence of the job that wrote it. A write matches only a
document whose fence is not newer; where there is a newer one the upsert finds its name taken, so an
owner that was replaced learns it with its first write and changes nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from collector.errors import DatabaseUnavailable, LeaseLost
from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.mongo.client import Database, Document
    from collector.streams.publisher import (
        HeartbeatMessage,
        MarketStatusMessage,
        PriceSnapshot,
    )

PRICE, HEARTBEAT, MARKET_STATUS = "price", "heartbeat", "market_status"
KINDS = (PRICE, HEARTBEAT, MARKET_STATUS)
_DUPLICATE_KEY = 11000


class LiveBoard:
    """A `Publisher` that keeps the last of each message in MongoDB, and the way to read them."""

    def __init__(self, database: Database) -> None:
        self._live = database.live

    async def publish_prices(self, snapshot: PriceSnapshot) -> None:
        await self._put(
            [
                _put(PRICE, snapshot.exchange_id, snapshot.fence, price.payload(), price.symbol)
                for price in snapshot.prices
            ]
        )

    async def publish_heartbeat(self, heartbeat: HeartbeatMessage) -> None:
        await self._put(
            [_put(HEARTBEAT, heartbeat.exchange_id, heartbeat.fence, heartbeat.payload)]
        )

    async def publish_market_status(self, status: MarketStatusMessage) -> None:
        await self._put([_put(MARKET_STATUS, status.exchange_id, status.fence, status.payload)])

    async def page(
        self,
        *,
        kind: str | None = None,
        exchange_id: str | None = None,
        symbol: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Document]:
        """Documents by `_id`, behind the one called `after`."""
        query: Document = {} if after is None else {"_id": {"$gt": after}}
        wanted = {"kind": kind, "exchange_id": exchange_id, "symbol": symbol}
        query |= {name: value for name, value in wanted.items() if value is not None}
        return await self._live.find(query, sort=[("_id", 1)], limit=limit)

    async def keep_only(self, exchange_id: str, fence: int, symbols: Sequence[str]) -> None:
        """Removes prices of symbols that are followed no longer."""
        others = {"exchange_id": exchange_id, "kind": PRICE, "symbol": {"$nin": list(symbols)}}
        with suppress(DatabaseUnavailable):
            await self._live.delete_many({**others, "fence": {"$lte": fence}})

    async def mids(self, limit: int = 200) -> dict[tuple[str, str], float]:
        """Prices between bid and ask, by exchange and symbol."""
        documents = await self.page(kind=PRICE, limit=limit)
        return {(each["exchange_id"], each["symbol"]): each["payload"]["mid"] for each in documents}

    async def of_ids(self, ids: Sequence[str]) -> list[Document]:
        return await self._live.find({"_id": {"$in": list(ids)}})

    async def _put(self, writes: Sequence[UpdateOne]) -> None:
        if not writes:
            return
        try:
            await self._live.bulk_write(writes, ordered=False)
        except BulkWriteError as error:
            codes = {each.get("code") for each in (error.details or {}).get("writeErrors", ())}
            if codes != {_DUPLICATE_KEY}:
                raise
            raise LeaseLost("a newer owner of the stream has published") from error
        except DatabaseUnavailable:
            return  # The driver's wrapper has logged it; the next message brings the newest state.


def live_id(kind: str, exchange_id: str, symbol: str | None = None) -> str:
    return "|".join((exchange_id, kind, *(() if symbol is None else (symbol,))))


def _put(
    kind: str,
    exchange_id: str,
    fence: int,
    payload: Mapping[str, Any],
    symbol: str | None = None,
) -> UpdateOne:
    document = {
        "kind": kind,
        "exchange_id": exchange_id,
        "symbol": symbol,
        "fence": fence,
        "payload": dict(payload),
    }
    return UpdateOne(
        {"_id": live_id(kind, exchange_id, symbol), "fence": {"$lte": fence}},
        [
            {
                "$replaceWith": {
                    "$mergeObjects": [{"_id": "$_id"}, {"$literal": document}, {"seen_at": NOW_MS}]
                }
            }
        ],
        upsert=True,
    )
