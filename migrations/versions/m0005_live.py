"""The last state of every price stream: the collection `live`, found by exchange and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel

if TYPE_CHECKING:
    from collector.mongo.client import Database

INDEXES = [
    IndexModel([("exchange_id", ASCENDING), ("kind", ASCENDING), ("_id", ASCENDING)], name="kinds"),
]


async def apply(database: Database) -> None:
    await database.raw["live"].create_indexes(INDEXES)
