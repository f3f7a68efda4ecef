"""The `tickers` collection: the last price of every market, as each exchange last reported it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymongo import UpdateOne

from collector.exchanges.registry import known_exchanges
from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.exchanges.port import Ticker
    from collector.mongo.client import Database, Document

_AFTER_BAR = "}"
"""The character after the bar of a key: where the keys of an exchange end."""


class TickerBoard:
    """One document for each exchange and symbol; `_id` names both, so there is never a second."""

    def __init__(self, database: Database) -> None:
        self._tickers = database.tickers

    async def save(self, exchange_id: str, tickers: Sequence[Ticker]) -> None:
        """Writes a whole snapshot at once. An older ticker never replaces a newer one."""
        if tickers:
            await self._tickers.bulk_write(
                [_seen(exchange_id, ticker) for ticker in tickers], ordered=False
            )

    async def find(self, exchange_id: str, symbol: str) -> Document | None:
        """What the exchange last reported of one market."""
        return await self._tickers.find_one({"_id": _key(exchange_id, symbol)})

    async def page(
        self,
        exchange_id: str | None = None,
        symbol: str | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Document]:
        """Tickers by `_id`, after the one called `after`: by symbol within an exchange.

        Every query is a range of `_id`, or a few exact ones, so that no other index is needed.
        """
        wanted: Document = {}
        if symbol is not None:
            exchanges = known_exchanges() if exchange_id is None else (exchange_id,)
            wanted["$in"] = [_key(each, symbol) for each in exchanges]
        elif exchange_id is not None:
            wanted |= {"$gt": _key(exchange_id, ""), "$lt": f"{exchange_id}{_AFTER_BAR}"}
        if after is not None:
            wanted["$gt"] = max(after, wanted.get("$gt", ""))
        query = {"_id": wanted} if wanted else {}
        return await self._tickers.find(query, sort=[("_id", 1)], limit=limit)


def _seen(exchange_id: str, ticker: Ticker) -> UpdateOne:
    fields: dict[str, Any] = {
        "_id": _key(exchange_id, ticker.symbol),
        "exchange_id": exchange_id,
        "symbol": ticker.symbol,
        "last": ticker.last,
        "bid": ticker.bid,
        "ask": ticker.ask,
        "volume": ticker.volume,
        "ts": ticker.ts,
    }
    is_newer = {"$gte": [ticker.ts, {"$ifNull": ["$ts", 0]}]}
    seen = {"$mergeObjects": [{"$literal": fields}, {"seen_at": NOW_MS}]}
    return UpdateOne(
        {"_id": fields["_id"]},
        [{"$replaceWith": {"$cond": [is_newer, seen, "$$ROOT"]}}],
        upsert=True,
    )


def _key(exchange_id: str, symbol: str) -> str:
    return f"{exchange_id}|{symbol}"
