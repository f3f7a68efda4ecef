"""The `markets` collection: what each exchange lists, so that workers need not request it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import logs
from collector.durations import DAY_MS
from collector.market.letters import patterns
from collector.markets.changes import Kind, changes, doubtful
from collector.markets.documents import markets_from_documents, markets_to_documents
from collector.markets.statements import moved, seen
from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.exchanges.port import Markets
    from collector.mongo.client import Database, Document

FRESH_MS = DAY_MS
_log = logs.get("collector.connectors")


class MarketBook:
    """Every market ever seen, with its history. One that is no longer listed stays, as inactive.

    `epochs` are past times in which it was listed; `changes` the changes of its limits and
    precision. `news` is a change that is not processed yet: saving markets sets it, and a
    `markets_refresh` removes it.

    A list is many documents, so it is written piece by piece. Its mark in `system` is written last:
    without it the markets of an exchange are not known, however many documents there are.
    """

    def __init__(self, database: Database) -> None:
        self._markets = database.markets
        self._marks = database.system
        self._server_clock = database.server_clock

    async def save(self, markets: Markets) -> None:
        """Stores a whole refresh. An empty answer never replaces known markets."""
        if not markets.markets:
            return
        known = await self._known(markets.exchange_id)
        if doubtful(known, markets):
            _log.warning(
                "markets_doubtful",
                exchange=markets.exchange_id,
                named=len(markets.markets),
                known=len(known),
            )
        found = changes(known, markets)
        moves = [statement for each in found for statement in moved(known, markets, each)]
        if moves:
            await self._markets.bulk_write(moves)
        listed = frozenset(each.symbol for each in found if each.kind is Kind.LISTED)
        await self._markets.bulk_write(
            [
                seen(document, known.get(document["symbol"]), is_new=document["symbol"] in listed)
                for document in markets_to_documents(markets)
            ],
            ordered=False,
        )
        await self._marks.update_one(
            _mark(markets.exchange_id), [{"$set": {"saved_at": NOW_MS}}], upsert=True
        )

    async def age_ms(self, exchange_id: str) -> int | None:
        """How long ago a whole list was stored; None when there is none."""
        mark = await self._marks.find_one(_mark(exchange_id))
        return None if mark is None else self._server_clock.now_ms() - int(mark["saved_at"])

    async def news(self, exchange_id: str) -> list[Document]:
        """The markets of an exchange with an unprocessed change, by symbol."""
        return await self._markets.find(
            {"exchange_id": exchange_id, "news": {"$exists": True}},
            projection={"raw": 0},
            sort=[("symbol", 1)],
        )

    async def heeded(self, market: Document) -> None:
        """Marks the change in `news` as processed. A newer change stays."""
        await self._markets.update_one(
            {"_id": market["_id"], "news.at": market["news"]["at"]}, {"$unset": {"news": ""}}
        )

    async def unlisted(self, exchange_id: str, symbols: Sequence[str]) -> list[Document]:
        """The symbols of these that the exchange does not trade."""
        return await self._markets.find(
            {"exchange_id": exchange_id, "symbol": {"$in": list(symbols)}, "active": False},
            projection={"raw": 0},
            sort=[("symbol", 1)],
        )

    async def _known(self, exchange_id: str) -> dict[str, Document]:
        documents = await self._markets.find({"exchange_id": exchange_id}, projection={"raw": 0})
        return {document["symbol"]: document for document in documents}

    async def load(self, exchange_id: str) -> Markets | None:
        """The stored markets, or None when there is no whole list or it is old."""
        age_ms = await self.age_ms(exchange_id)
        if age_ms is None or age_ms > FRESH_MS:
            return None
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

    async def listings(self, exchange_id: str, symbols: Sequence[str]) -> dict[str, Document]:
        """By symbol, since when each of the markets is listed and when it left."""
        documents = await self._markets.find(
            {"exchange_id": exchange_id, "symbol": {"$in": sorted(set(symbols))}},
            projection=["symbol", "active", "listed_ms", "delisted_at"],
        )
        return {document["symbol"]: document for document in documents}

    async def is_listed(self, exchange_id: str, symbol: str) -> bool:
        """Whether the exchange trades it, as far as is known; True for an unknown market."""
        market = await self.find(exchange_id, symbol)
        return market is None or bool(market["active"])

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

    async def like(
        self, text: str, exchange_id: str | None = None, *, most: int = 1000
    ) -> list[Document]:
        """Markets with these letters in the symbol (market/letters.py), of one exchange or all."""
        query: Document = {} if exchange_id is None else {"exchange_id": exchange_id}
        words = [{"symbol": {"$regex": each, "$options": "i"}} for each in patterns(text)]
        if words:
            query["$and"] = words
        return await self._markets.find(
            query,
            projection={"raw": 0},
            sort=[("exchange_id", 1), ("symbol", 1)],
            limit=most,
        )

    async def named(
        self,
        exchange_id: str,
        filters: Mapping[str, str | bool],
        symbols: Sequence[str],
        *,
        limit: int,
    ) -> list[Document]:
        """Those of these symbols, in order. `filters` are exact values."""
        query: Document = {name: {"$eq": value} for name, value in filters.items()}
        query |= {"exchange_id": exchange_id, "symbol": {"$in": list(symbols)}}
        return await self._markets.find(
            query, projection={"raw": 0}, sort=[("symbol", 1)], limit=limit
        )

    async def symbols(self, exchange_id: str) -> list[str]:
        """Every symbol ever seen, in order; empty when the exchange's markets are not known."""
        if await self.age_ms(exchange_id) is None:
            return []
        documents = await self._markets.find(
            {"exchange_id": exchange_id}, projection={"symbol": 1, "_id": 0}, sort=[("symbol", 1)]
        )
        return [document["symbol"] for document in documents]

    async def listed(self, exchange_id: str) -> list[str]:
        """The symbols that the exchange trades today, in order."""
        documents = await self._markets.find(
            {"exchange_id": exchange_id, "active": True},
            projection={"symbol": 1, "_id": 0},
            sort=[("symbol", 1)],
        )
        return [document["symbol"] for document in documents]


def _mark(exchange_id: str) -> Document:
    """The document that says that a list of markets is complete, and since when."""
    return {"_id": f"markets:{exchange_id}"}
