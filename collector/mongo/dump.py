"""A database's documents as files: every collection of one moment, and back.

A collection is one file of BSON documents, one after the other, as `mongodump` writes them; any
tool that reads BSON reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bson
from bson.raw_bson import RawBSONDocument
from pymongo import IndexModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from pymongo.asynchronous.client_session import AsyncClientSession

    from collector.mongo.client import Database

OF_THE_MOMENT = frozenset({"workers", "live"})
"""Who is alive and the last prices: not worth keeping."""
BACKED_UP = frozenset(
    {
        *("connectors", "jobs", "job_runs", "markets", "reports", "system", "tickers"),
        *("history_inbox", "history_networks", "history_transactions"),
    }
)
"""Every other collection of the product; no other name is written or read."""
INSERTED_AT_ONCE = 1_000
_RAW = bson.CodecOptions(document_class=RawBSONDocument)


@dataclass(frozen=True, slots=True)
class DumpedCollection:
    """A collection's documents in a file of BSON, and its indexes."""

    name: str
    documents: int
    indexes: Sequence[Mapping[str, Any]]


async def dump(
    database: Database, opened: Callable[[str], AbstractContextManager[BinaryIO]]
) -> list[DumpedCollection]:
    """Writes the documents of `BACKED_UP` to the files that `opened` gives for their names.

    All of them are as of one moment.
    """
    raw = database.raw
    kept = sorted(BACKED_UP.intersection(await database.fairly(raw.list_collection_names)))

    async def read() -> list[DumpedCollection]:
        dumped = []
        async with raw.client.start_session(snapshot=True) as session:
            for name in kept:
                with opened(name) as file:
                    dumped.append(await _dumped(database, name, session, file))
        return dumped

    return await database.fairly(read)


async def _dumped(
    database: Database, name: str, session: AsyncClientSession, file: BinaryIO
) -> DumpedCollection:
    collection, documents = database.raw[name], 0
    batch: Any
    async for batch in collection.find_raw_batches({}, session=session):
        file.write(batch)
        documents += len(bson.decode_all(batch, _RAW))
    indexes = [
        _plain(index) async for index in await collection.list_indexes() if index["name"] != "_id_"
    ]
    return DumpedCollection(name, documents, indexes)


def _plain(index: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the index again."""
    options = {name: value for name, value in index.items() if name not in ("v", "ns")}
    return {**options, "key": list(index["key"].items())}


async def load(database: Database, dumped: DumpedCollection, file: BinaryIO) -> None:
    """Replaces a collection by the documents of a dump."""
    collection = database.raw[dumped.name]
    await database.fairly(collection.drop)
    await database.fairly(database.raw.create_collection, dumped.name)
    models = [_index(each) for each in dumped.indexes]
    if models:
        await database.fairly(collection.create_indexes, models)
    waiting: list[Any] = []
    for document in bson.decode_file_iter(file, _RAW):
        waiting.append(document)
        if len(waiting) == INSERTED_AT_ONCE:
            await database.fairly(collection.insert_many, waiting)
            waiting = []
    if waiting:
        await database.fairly(collection.insert_many, waiting)


async def merge(database: Database, dumped: DumpedCollection, file: BinaryIO, *, last: str) -> None:
    """Puts documents of a dump beside those that exist, the one with the id `last` at the end."""
    collection = database.raw[dumped.name]
    models = [_index(each) for each in dumped.indexes]
    if models:
        await database.fairly(collection.create_indexes, models)
    documents = sorted(bson.decode_file_iter(file), key=lambda document: document["_id"] == last)
    for document in documents:
        same = {"_id": document["_id"]}
        await database.fairly(collection.replace_one, same, document, upsert=True)


def _index(record: Mapping[str, Any]) -> IndexModel:
    options = {name: value for name, value in record.items() if name != "key"}
    return IndexModel([(name, order) for name, order in record["key"]], **options)
