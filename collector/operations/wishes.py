"""`_collector/wishes/{id}.json` in the lake: the connectors and jobs that a database holds.

The files of the lake show what was fetched, not what was requested. So every process that changes
connectors or jobs records them here, and workers record what others missed. Each database has a
file of its own: an empty database that took the place of a lost one cannot overwrite what the lost
one recorded. A database that holds nothing records nothing, for the same reason.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from pymongo import ReturnDocument

from collector import logs
from collector.connectors.wishes import connector_wishes
from collector.errors import CollectorError
from collector.jobs.turn import DutyTurn
from collector.jobs.wishes import JobWish, job_wishes
from collector.mongo.schema import VERSION, current_version
from collector.store.port import Corrupt, Swapped, Vanished

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from collector.mongo.client import Database
    from collector.store.port import Storage

FOLDER = "_collector/wishes"
FORMAT = 1
EVERY_MS = 7_000
REST_PER_COST = 50
"""Reading that took one second is not repeated for fifty."""
LOOK_EVERY_SECONDS = 1.0
CHANGING = frozenset({"connectors", "jobs"})
_ATTEMPTS = 20

_log = logs.get("collector.wishes")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What one database holds of connectors and jobs."""

    connectors: Sequence[Mapping[str, Any]]
    jobs: Sequence[JobWish]
    recorded_ms: int = 0

    @property
    def request(self) -> dict[str, Any]:
        """What has to be recorded when it differs."""
        return {
            "connectors": [dict(each) for each in self.connectors],
            "jobs": [each.request for each in self.jobs],
        }

    def encode(self) -> bytes:
        record = {
            "format": FORMAT,
            "recorded_ms": self.recorded_ms,
            "connectors": [dict(each) for each in self.connectors],
            "jobs": [each.record() for each in self.jobs],
        }
        return orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def decode(cls, path: str, data: bytes) -> Wishes:
        """Raises Corrupt."""
        try:
            record = orjson.loads(data)
            jobs = tuple(JobWish.read(each) for each in record["jobs"])
            return cls(tuple(record["connectors"]), jobs, record["recorded_ms"])
        except (ValueError, KeyError, TypeError) as error:
            raise Corrupt(path, error) from None


def own_path(database_id: str) -> str:
    return f"{FOLDER}/{database_id}.json"


def recorded(storage: Storage) -> dict[str, Wishes]:
    """Every record of the lake by its path. Waits for the disk."""
    paths = [f"{FOLDER}/{name}" for name in storage.names(FOLDER) if name.endswith(".json")]
    return {path: Wishes.decode(path, storage.read(path)) for path in paths}


async def record_wishes(database: Database, storage: Storage) -> bool:
    """Records connectors and jobs if they differ from the record; whether something was written.

    The record is looked at before the database is read and replaced only if it is still the same:
    of two processes that record at once, the one that has read the older state reads again.
    """
    for _ in range(_ATTEMPTS):
        if await current_version(database) != VERSION:
            return False
        path = own_path(await database_id(database))
        stamp, before = await asyncio.to_thread(_look, storage, path)
        wishes = await current_wishes(database)
        if not wishes.connectors and not wishes.jobs:
            return False
        if before is not None and before.request == wishes.request:
            return False
        try:
            await asyncio.to_thread(_replace, storage, path, stamp, wishes)
        except Swapped:
            continue
        return True
    raise Swapped(f"{path} is replaced faster than the database can be read")


async def record_changes(database: Database, storage: Storage) -> None:
    """Records connectors and jobs if this process has written to any since the last call.

    Never fails: what could not be recorded is logged, and recorded by the next worker.
    """
    if not database.written & CHANGING:
        return
    database.written.difference_update(CHANGING)
    try:
        await record_wishes(database, storage)
    except CollectorError as error:
        database.written.update(CHANGING)
        _log.warning("wishes_not_recorded", error=str(error))


@asynccontextmanager
async def recording(database: Database, storage: Storage) -> AsyncIterator[None]:
    """Records changes within a second, and once more at the end."""

    async def keep_recording() -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            await record_changes(database, storage)

    task = asyncio.create_task(keep_recording())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await record_changes(database, storage)


async def current_wishes(database: Database) -> Wishes:
    return Wishes(
        await connector_wishes(database), await job_wishes(database), await database.now_ms()
    )


async def database_id(database: Database) -> str:
    """The database's own random word, chosen once."""
    document = await database.system.find_one_and_update(
        {"_id": "identity"},
        {"$setOnInsert": {"word": uuid.uuid4().hex[:16]}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    assert document is not None
    return str(document["word"])


class WishKeeper:
    """The shared duty of recording, for workers: one of them does it for all."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage
        self._turn = DutyTurn(database, "record wishes")

    async def take_turn(self) -> None:
        token = await self._turn.take()
        if token is None:
            return
        began = time.monotonic()
        await record_wishes(self._database, self._storage)
        took_ms = round((time.monotonic() - began) * 1000)
        await self._turn.end(token, {}, rest_ms=max(EVERY_MS, REST_PER_COST * took_ms))


def _look(storage: Storage, path: str) -> tuple[str | None, Wishes | None]:
    stamp = storage.stamp(path)
    try:
        return stamp, Wishes.decode(path, storage.read(path))
    except (Vanished, Corrupt):
        return stamp, None


def _replace(storage: Storage, path: str, stamp: str | None, wishes: Wishes) -> None:
    with storage.draft(path) as draft:
        draft.sink.write(wishes.encode())
        draft.finish()
        draft.commit(stamp)
