"""Runs migrations: in order, one runner at a time, and again from where it died.

A runner holds a lease on the document `migrating` of `system`, on the server's clock. Another one
waits for it; when the holder dies the lease runs out and the next runner repeats the unfinished
step, which every step allows.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pymongo
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.errors import RetryLater, SchemaMismatch
from collector.mongo.client import NOW_MS
from collector.mongo.schema import current_version
from migrations.versions import MIGRATIONS, Migration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from collector.mongo.client import Database

LEASE_MS = 30_000
WAIT_SECONDS = 120.0
LONGEST_STEP_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Applied:
    """What is on record about one migration."""

    version: int
    name: str
    finished_at: datetime | None


async def status(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> list[Applied]:
    """Every known migration, with when it finished here."""
    documents = await database.system.find({"kind": "migration"}, sort=[("version", 1)])
    finished = {document["version"]: document.get("finished_at") for document in documents}
    return [Applied(m.version, m.name, finished.get(m.version)) for m in migrations]


async def up(
    database: Database,
    migrations: Sequence[Migration] = MIGRATIONS,
    *,
    lease_ms: int = LEASE_MS,
    wait_seconds: float = WAIT_SECONDS,
) -> list[Migration]:
    """Applies what is missing and returns it. Refuses a database that is ahead of us."""
    async with _alone(database, lease_ms, wait_seconds):
        found = await current_version(database)
        newest = migrations[-1].version
        if found > newest:
            raise SchemaMismatch(f"the database is at schema {found}, this program knows {newest}")
        pending = [migration for migration in migrations if migration.version > found]
        for migration in pending:
            await _apply(database, migration)
        return pending


async def _apply(database: Database, migration: Migration) -> None:
    record = {"_id": f"migration:{migration.version}"}
    await database.system.update_one(
        record,
        [
            {
                "$set": {
                    "kind": "migration",
                    "version": migration.version,
                    "name": migration.name,
                    "started_at": "$$NOW",
                }
            }
        ],
        upsert=True,
    )
    # Building an index on a million jobs takes longer than any ordinary statement may.
    with pymongo.timeout(LONGEST_STEP_S):
        await migration.apply(database)
    await database.system.update_one(record, [{"$set": {"finished_at": "$$NOW"}}])
    await database.system.update_one(
        {"_id": "schema"}, {"$max": {"version": migration.version}}, upsert=True
    )


@asynccontextmanager
async def _alone(database: Database, lease_ms: int, wait_seconds: float) -> AsyncIterator[None]:
    """Holds the runner's lease; renews it while the body runs."""
    me = uuid.uuid4().hex
    try:
        async with asyncio.timeout(wait_seconds):
            while not await _take(database, me, lease_ms):
                await asyncio.sleep(min(0.2, lease_ms / 3000))
    except TimeoutError:
        raise RetryLater("another migration has been running all this time: try later") from None
    renewal = asyncio.create_task(_keep(database, me, lease_ms))
    try:
        yield
    finally:
        renewal.cancel()
        await asyncio.gather(renewal, return_exceptions=True)
        await database.system.delete_one({"_id": "migrating", "holder": me})


async def _take(database: Database, me: str, lease_ms: int) -> bool:
    """Takes or renews the lease; leaves another holder's alone while it lasts."""
    free = {
        "$or": [
            {"$eq": [{"$ifNull": ["$holder", me]}, me]},
            {"$lte": [{"$ifNull": ["$until", 0]}, NOW_MS]},
        ]
    }
    held = {"holder": me, "until": {"$add": [NOW_MS, lease_ms]}}
    update = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", {"$cond": [free, held, {}]}]}}]
    try:
        document = await database.system.find_one_and_update(
            {"_id": "migrating"}, update, upsert=True, return_document=ReturnDocument.AFTER
        )
    except DuplicateKeyError:
        return False  # Two first runners met and the other one was faster.
    return document is not None and document["holder"] == me


async def _keep(database: Database, me: str, lease_ms: int) -> None:
    while True:
        await asyncio.sleep(lease_ms / 3000)
        await _take(database, me, lease_ms)
