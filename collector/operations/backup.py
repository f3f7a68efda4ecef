"""A backup of the database and the lake, made while everything runs.

The database is copied first, as of one moment, and the files after it: so the files hold at least
what the cursors claim. `backup.json` is written last; a backup without it is not complete.

    {target}/backup.json                what is in it, with a digest of every file
    {target}/database/{collection}.bson
    {target}/lake/...                   the files of the lake, under their own names
"""

from __future__ import annotations

import asyncio
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from collector.errors import ConfigError
from collector.mongo.dump import BACKED_UP, DumpedCollection, dump
from collector.mongo.schema import VERSION
from collector.operations.opened_database import opened_database
from collector.store.address import in_object_store
from collector.store.lake_copy import copy_lake, files_below
from collector.store.port import Corrupt, Vanished, is_below_root
from collector.store.root import storage_at
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment
    from collector.store.port import Storage

MANIFEST = "backup.json"
LAKE = "lake/"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a complete backup holds."""

    schema: int
    taken_ms: int
    build_signature: str
    collections: Sequence[DumpedCollection]
    files: Mapping[str, str]
    """The digest of every file by its path in the backup."""

    def encode(self) -> bytes:
        return orjson.dumps(
            {"format": FORMAT, **asdict(self)},
            option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
        )

    @classmethod
    def read(cls, storage: Storage, place: str) -> BackupManifest:
        """Raises ConfigError when there is no complete backup."""
        try:
            record = orjson.loads(storage.read(MANIFEST))
        except Vanished:
            raise ConfigError(f"{place} has no {MANIFEST}: it is no complete backup") from None
        except ValueError as error:
            raise Corrupt(MANIFEST, error) from None
        try:
            if (form := record["format"]) != FORMAT:
                raise ConfigError(f"{place} has format {form}, this program reads {FORMAT}")
            manifest = cls(
                int(record["schema"]),
                int(record["taken_ms"]),
                str(record["build_signature"]),
                [DumpedCollection(**each) for each in record["collections"]],
                dict(record["files"]),
            )
            manifest._check_names()
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(MANIFEST, f"{type(error).__name__} {error}") from None
        return manifest

    def _check_names(self) -> None:
        """Refuses names that no backup has. A restore takes them for paths and collections."""
        names = {each.name for each in self.collections}
        if unknown := names - BACKED_UP:
            raise ConfigError(f"{MANIFEST}: {min(unknown)!r} is no collection of a backup")
        dumps = {collection_path(name) for name in names | {"system"}}
        if missing := dumps - self.files.keys():
            raise ConfigError(f"{MANIFEST}: {min(missing)} is missing")
        for path in self.files:
            inside = path.startswith(LAKE) and is_below_root(path)
            if not inside and path not in dumps:
                raise ConfigError(f"{MANIFEST}: {path!r} is no file of a backup")

    @property
    def summary(self) -> dict[str, Any]:
        return {
            "schema": self.schema,
            "taken_ms": self.taken_ms,
            "documents": sum(each.documents for each in self.collections),
            "files": sum(path.startswith(LAKE) for path in self.files),
        }


def collection_path(name: str) -> str:
    return f"database/{name}.bson"


async def back_up(where: Deployment, place: str) -> BackupManifest:
    """Copies the database and the lake to a folder, or to `s3://bucket/prefix`, that is empty."""
    root = where.settings.data_root
    _check_apart(place, root)
    target = storage_at(place)
    if await asyncio.to_thread(_holds_files, target):
        raise ConfigError(f"{place} is not empty: a backup needs a place of its own")
    async with opened_database(where, "backup") as database:
        with _files_of_this_user():
            return await backed_up(database, storage_at(root), target)


async def backed_up(database: Database, lake: Storage, target: Storage) -> BackupManifest:
    """The same between open storages."""
    files: dict[str, str] = {}

    @contextmanager
    def opened(name: str) -> Iterator[BinaryIO]:
        path = collection_path(name)
        with target.draft(path) as draft:
            yield draft.sink
            draft.finish()
            files[path] = draft.sha256()
            draft.commit(None)

    taken_ms = await database.now_ms()
    collections = await dump(database, opened)
    copied = await asyncio.to_thread(copy_lake, lake, target, LAKE)
    files |= {f"{LAKE}{path}": digest for path, digest in copied.items()}
    manifest = BackupManifest(VERSION, taken_ms, build_signature(), collections, files)
    await asyncio.to_thread(target.write_atomic, MANIFEST, manifest.encode())
    return manifest


@contextmanager
def _files_of_this_user() -> Iterator[None]:
    """Keeps other users out of what this process creates meanwhile."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _holds_files(storage: Storage) -> bool:
    return next(files_below(storage), None) is not None


def _check_apart(place: str, root: str) -> None:
    """Refuses a folder inside the lake: the files there would be taken for the lake's own."""
    if in_object_store(place) or in_object_store(root):
        return
    target, lake = Path(place).absolute(), Path(root).absolute()
    if target == lake or lake in target.parents or target in lake.parents:
        raise ConfigError(f"{target} and the lake {lake} must not lie inside one another")
