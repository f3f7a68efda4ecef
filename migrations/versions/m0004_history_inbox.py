"""The inbox of trade history: events in order, found by sequence and by transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel
from pymongo.errors import OperationFailure

if TYPE_CHECKING:
    from collector.mongo.client import Database

_EXISTS = 48
INDEXES = [
    IndexModel([("network", ASCENDING), ("sequence", ASCENDING)], name="in_order", unique=True),
    IndexModel([("network", ASCENDING), ("tx_hash", ASCENDING)], name="of_transaction"),
]


async def apply(database: Database) -> None:
    """A transaction writes to two collections, and makes neither."""
    await database.raw["history_inbox"].create_indexes(INDEXES)
    try:
        # Without a look before: it may be made between the two.
        await database.raw.create_collection("history_networks", check_exists=False)
    except OperationFailure as error:
        if error.code != _EXISTS:
            raise
