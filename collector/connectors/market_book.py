"""The `markets` collection: what each exchange lists, so that workers need not ask again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import UpdateOne

from collector.exchanges.market_documents import markets_from_documents, markets_to_documents
from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.port import Markets
    from collector.mongo.client import Database, Document

FRESH_MS = 24 * 3_600_000


class MarketBook:
    """Every market ever seen. A market that is no longer listed stays, as inactive."""

    def __init__(self, database: Database) -> None:
        self._markets = database.markets

    async def save(self, markets: Markets) -> None:
        """Writes down a whole refresh. Zero markets never replace known ones."""
        documents = markets_to_documents(markets)
        if not documents:
            return
        await self._markets.bulk_write(
            [
                UpdateOne(
                    {"exchange_id": document["exchange_id"], "symbol": document["symbol"]},
                    [
                        {
                            "$set": {
                                **{name: {"$literal": value} for name, value in document.items()},
                                "first_seen_at": {"$ifNull": ["$first_seen_at", NOW_MS]},
                                "seen_at": NOW_MS,
                            }
                        }
                    ],
                    upsert=True,
                )
                for document in documents
            ],
            ordered=False,
        )
        await self._markets.update_many(
            {
                "exchange_id": markets.exchange_id,
                "active": True,
                "symbol": {"$nin": [document["symbol"] for document in documents]},
            },
            [{"$set": {"active": False, "delisted_at": NOW_MS}}],
        )

    async def load(self, exchange_id: str) -> Markets | None:
        """The stored markets, or None when there are none or they are old."""
        documents = await self._markets.find(
            {
                "exchange_id": exchange_id,
                "$expr": {"$gt": ["$seen_at", {"$subtract": [NOW_MS, FRESH_MS]}]},
            }
        )
        return markets_from_documents(exchange_id, documents) if documents else None

    async def find(self, exchange_id: str, symbol: str) -> Document | None:
        """One market's document, however old."""
        return await self._markets.find_one(
            {"exchange_id": exchange_id, "symbol": symbol}, projection={"raw": 0}
        )

    async def page(
        self,
        exchange_id: str,
        filters: Mapping[str, str | bool] | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Document]:
        """Markets by symbol, after the symbol `after`. `filters` are exact values."""
        query: Document = {name: {"$eq": value} for name, value in (filters or {}).items()}
        query["exchange_id"] = exchange_id
        if after is not None:
            query["symbol"] = {"$gt": after}
        return await self._markets.find(
            query, projection={"raw": 0}, sort=[("symbol", 1)], limit=limit
        )

    async def symbols(self, exchange_id: str) -> list[str]:
        """Every symbol ever seen, in order; empty when the exchange's markets are not known."""
        documents = await self._markets.find(
            {"exchange_id": exchange_id}, projection={"symbol": 1, "_id": 0}, sort=[("symbol", 1)]
        )
        return [document["symbol"] for document in documents]
