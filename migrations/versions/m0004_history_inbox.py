"""The inbox of trade history: events in order, found by sequence and by transaction."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel
from pymongo.errors import CollectionInvalid

if TYPE_CHECKING:
    from collector.mongo.client import Database

INDEXES = [
    IndexModel([("network", ASCENDING), ("sequence", ASCENDING)], name="in_order", unique=True),
    IndexModel([("network", ASCENDING), ("tx_hash", ASCENDING)], name="of_transaction"),
]


async def apply(database: Database) -> None:
    existing = await database.raw.list_collection_names()
    # A transaction writes to both, and makes neither.
    for collection in ("history_inbox", "history_networks"):
        if collection not in existing:
            with suppress(CollectionInvalid):
                await database.raw.create_collection(collection)
    await database.raw["history_inbox"].create_indexes(INDEXES)
