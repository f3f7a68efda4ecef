"""The inbox of trade history: events in order, and the last event of every transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ASCENDING, IndexModel
from pymongo.errors import OperationFailure

if TYPE_CHECKING:
    from collector.mongo.client import Database

_EXISTS = 48
INDEXES = [
    IndexModel([("network", ASCENDING), ("sequence", ASCENDING)], name="in_order", unique=True),
]


async def apply(database: Database) -> None:
    """A transaction writes to three collections, and makes none."""
    await database.raw["history_inbox"].create_indexes(INDEXES)
    for name in ("history_networks", "history_transactions"):
        try:
            # Without a look before: it may be made between the two.
            await database.raw.create_collection(name, check_exists=False)
        except OperationFailure as error:
            if error.code != _EXISTS:
                raise
