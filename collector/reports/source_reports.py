"""The `reports` collection: what the last source check of each series found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.mongo.client import Database, Document
    from collector.reports.check import Check


class SourceReports:
    """One document a series, the newest finding."""

    def __init__(self, database: Database) -> None:
        self._reports = database.reports

    async def write(self, series: Series, check: Check, *, compared: int) -> None:
        """`compared` bars were compared; `check` holds those that differ at the exchange."""
        fields = {
            "kind": "source",
            "exchange_id": series.exchange_id,
            "symbol": series.symbol,
            "timeframe": series.timeframe.name,
            "compared": compared,
            **check.document(),
        }
        literals = {name: {"$literal": value} for name, value in fields.items()}
        await self._reports.update_one(
            {"_id": _name(series)}, [{"$set": {**literals, "checked_at": NOW_MS}}], upsert=True
        )

    async def newest(self, exchange_id: str | None = None, *, limit: int = 100) -> list[Document]:
        """The newest first, of one exchange or of all."""
        query: Document = {"kind": "source"}
        if exchange_id is not None:
            query["exchange_id"] = exchange_id
        return await self._reports.find(query, sort=[("checked_at", -1)], limit=limit)

    async def find(self, series: Series) -> Document | None:
        return await self._reports.find_one({"_id": _name(series)})


def _name(series: Series) -> str:
    return f"source|{series.exchange_id}|{series.symbol}|{series.timeframe}"
