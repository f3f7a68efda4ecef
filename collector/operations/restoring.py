"""A backup put back into an empty database and a lake.

Files come first and the database after them, and the schema's number last: no program starts on a
database that was restored in part. Restoring again after it was interrupted starts over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector.connectors.session_lease import sessions_begin_anew
from collector.errors import ConfigError, SchemaMismatch
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.put_down import put_down_restored
from collector.mongo.dump import load, merge
from collector.mongo.schema import VERSION
from collector.operations.backup import LAKE, BackupManifest, collection_path
from collector.operations.opened_database import migrated, unmigrated_database
from collector.store.lake_copy import copy_file
from collector.store.port import Corrupt
from collector.store.root import storage_at

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment
    from collector.store.port import Storage


async def restore(where: Deployment, place: str) -> BackupManifest:
    """Puts a backup back. ConfigError, with nothing changed, when something is in the way."""
    backup = storage_at(place)
    manifest = await asyncio.to_thread(BackupManifest.read, backup, place)
    if manifest.schema > VERSION:
        raise SchemaMismatch(
            f"the backup is at schema {manifest.schema}, this program knows {VERSION}: "
            "restore it with the program that made it, or a newer one"
        )
    async with unmigrated_database(where, "restore") as (uri, database):
        await restored(database, storage_at(where.settings.data_root), backup, manifest)
        if manifest.schema < VERSION:
            await migrated(where, uri)
    return manifest


async def restored(
    database: Database, lake: Storage, backup: Storage, manifest: BackupManifest
) -> None:
    """The same between open storages."""
    await _check_database(database)
    await asyncio.to_thread(_check_files, lake, backup, manifest)
    await asyncio.to_thread(_copy_files, lake, backup, manifest)
    await database.system.update_one({"_id": "restoring"}, {"$set": {"is": True}}, upsert=True)
    await database.system.delete_many({"_id": {"$ne": "restoring"}})
    dumps = {each.name: each for each in manifest.collections}
    system = dumps.pop("system")
    for name, dumped in dumps.items():
        with backup.open(collection_path(name)) as file:
            await load(database, dumped, file)
    await _begin_anew(database)
    with backup.open(collection_path(system.name)) as file:
        await merge(database, system, file, last="schema")
    await database.system.delete_many({"_id": {"$in": ["restoring", "migrating"]}})


async def _check_database(database: Database) -> None:
    if await database.system.find_one({"_id": "restoring"}):
        return
    if await LiveWorkers(database).count():
        raise ConfigError("workers are running on this database: stop them first")
    for name in ("jobs", "connectors"):
        found = await database.raw[name].estimated_document_count()
        if found:
            raise ConfigError(f"the database has {found} {name}: restore into an empty one")


def _check_files(lake: Storage, backup: Storage, manifest: BackupManifest) -> None:
    """The backup's documents are whole, and the lake has no other file under a name of the backup.

    A file that is equal is fine: restoring may have been interrupted.
    """
    for path, digest in manifest.files.items():
        if not path.startswith(LAKE):
            if backup.sha256(path) != digest:
                raise Corrupt(path, "its bytes do not have their checksum")
            continue
        own = path.removeprefix(LAKE)
        if lake.stamp(own) is not None and lake.sha256(own) != digest:
            raise ConfigError(f"the lake has another {own}: restore into an empty lake")


def _copy_files(lake: Storage, backup: Storage, manifest: BackupManifest) -> None:
    for path, digest in manifest.files.items():
        own = path.removeprefix(LAKE)
        if not path.startswith(LAKE) or lake.stamp(own) is not None:
            continue
        if copy_file(backup, path, lake, own) != digest:
            lake.delete(own)
            raise Corrupt(path, "its bytes do not have their checksum")


async def _begin_anew(database: Database) -> None:
    await put_down_restored(database)
    await sessions_begin_anew(database)
