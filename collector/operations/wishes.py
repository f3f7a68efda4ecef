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
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson
from pymongo import ReturnDocument

from collector import logs
from collector.connectors.wishes import connector_wishes
from collector.durations import HOUR_MS, MINUTE_MS
from collector.errors import CollectorError
from collector.jobs.turn import DutyTurn
from collector.jobs.wishes import (
    RECORDED_AT_ONCE,
    JobWish,
    job_records,
    newest_request,
    without_progress,
)
from collector.mongo.schema import VERSION, current_version
from collector.store.port import Corrupt, Swapped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from collector.mongo.client import Database, Document
    from collector.store.port import Storage

FOLDER = "_collector/wishes"
FORMAT = 1
EVERY_MS = 7_000
REST_PER_COST = 50
"""Reading that took one second is not repeated for fifty."""
READ_ANYWAY_MS = HOUR_MS
"""How far jobs have come does not count as a change. It is recorded at least this often."""
SETTLED_MS = MINUTE_MS
"""How long a statement may be under way: what was requested later is read once more."""
LOOK_EVERY_SECONDS = 1.0
CHANGING = frozenset({"connectors", "jobs"})
_ATTEMPTS = 20
_UNSETTLED = object()

_log = logs.get("collector.wishes")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What one record holds of connectors and jobs."""

    connectors: Sequence[Mapping[str, Any]]
    jobs: Sequence[JobWish]
    recorded_ms: int = 0

    @classmethod
    def decode(cls, path: str, data: bytes) -> Wishes:
        """Raises Corrupt."""
        try:
            record = orjson.loads(data)
            jobs = tuple(JobWish.read(each) for each in record["jobs"])
            return cls(tuple(record["connectors"]), jobs, record["recorded_ms"])
        except (ValueError, KeyError, TypeError) as error:
            raise Corrupt(path, error) from None


@dataclass(frozen=True, slots=True)
class _NewRecord:
    """A record as it would be written now: connectors, and a line for each job."""

    recorded_ms: int
    connectors: bytes
    jobs: Sequence[bytes]
    digest: str
    """Of what has to be recorded when it differs."""

    def pieces(self) -> Iterator[bytes]:
        yield b'{"format":%d,"recorded_ms":%d,"connectors":' % (FORMAT, self.recorded_ms)
        yield self.connectors + b',"jobs":[\n'
        for at in range(0, len(self.jobs), RECORDED_AT_ONCE):
            yield b",\n" * bool(at) + b",\n".join(self.jobs[at : at + RECORDED_AT_ONCE])
        yield b"\n]}\n"


def own_path(database_id: str) -> str:
    return f"{FOLDER}/{database_id}.json"


def recorded(storage: Storage) -> dict[str, Wishes]:
    """Every record of the lake by its path. Waits for the disk."""
    paths = [f"{FOLDER}/{name}" for name in storage.names(FOLDER) if name.endswith(".json")]
    return {path: Wishes.decode(path, storage.read(path)) for path in paths}


async def record_wishes(database: Database, storage: Storage) -> bool:
    """Records connectors and jobs if they differ from the record; whether something was written.

    The database remembers which file was written last and what it is a record of. When nothing was
    requested since, no job is read. Otherwise all jobs are read, some at a time.

    The file is looked at before the database is read and replaced only if it is still the same: of
    two processes that record at once, the one that has read the older state reads again.
    """
    for _ in range(_ATTEMPTS):
        if await current_version(database) != VERSION:
            return False
        identity = await _identity(database)
        path, last = own_path(identity["word"]), identity.get("recorded") or {}
        stamp = await asyncio.to_thread(storage.stamp, path)
        now_ms, newest = await database.now_ms(), await newest_request(database)
        connectors = orjson.dumps(await connector_wishes(database))
        seen: Document = {"stamp": stamp, "connectors": sha256(connectors).hexdigest()}
        if (
            all(last.get(name) == value for name, value in seen.items())
            and newest == last.get("newest", _UNSETTLED)
            and now_ms - last["read_ms"] < READ_ANYWAY_MS
        ):
            return False
        record = await _read(database, connectors, now_ms)
        if not record.jobs and connectors == b"[]":
            return False
        differs = stamp is None or (stamp, record.digest) != (last.get("stamp"), last.get("digest"))
        if differs:
            try:
                await asyncio.to_thread(_replace, storage, path, stamp, record)
            except Swapped:
                continue
            seen["stamp"] = await asyncio.to_thread(storage.stamp, path)
        seen |= {"digest": record.digest, "read_ms": now_ms}
        if newest is None or newest.time * 1000 < now_ms - SETTLED_MS:
            # A statement that began before the newest one may end after this reading.
            seen["newest"] = newest
        await database.system.update_one(
            {"_id": "identity", "word": identity["word"]}, {"$set": {"recorded": seen}}
        )
        return differs
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
            began = time.monotonic()
            await record_changes(database, storage)
            rest = REST_PER_COST * (time.monotonic() - began)
            await asyncio.sleep(max(LOOK_EVERY_SECONDS, rest))

    task = asyncio.create_task(keep_recording())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await record_changes(database, storage)


async def database_id(database: Database) -> str:
    """The database's own random word, chosen once."""
    return str((await _identity(database))["word"])


class WishKeeper:
    """The shared duty of recording, for workers: one of them does it for all."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage
        self._turn = DutyTurn(database, "record wishes")

    async def take_turn(self) -> None:
        if not await self._turn.take():
            return
        began = time.monotonic()
        await record_wishes(self._database, self._storage)
        took_ms = round((time.monotonic() - began) * 1000)
        await self._turn.end({}, rest_ms=max(EVERY_MS, REST_PER_COST * took_ms))


async def _identity(database: Database) -> Document:
    document = await database.system.find_one_and_update(
        {"_id": "identity"},
        {"$setOnInsert": {"word": uuid.uuid4().hex[:16]}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    assert document is not None
    return document


async def _read(database: Database, connectors: bytes, now_ms: int) -> _NewRecord:
    digest, jobs = sha256(connectors), list[bytes]()
    async for records in job_records(database):
        for record in records:
            jobs.append(orjson.dumps(record))
            digest.update(orjson.dumps(without_progress(record)))
    return _NewRecord(now_ms, connectors, jobs, digest.hexdigest())


def _replace(storage: Storage, path: str, stamp: str | None, record: _NewRecord) -> None:
    with storage.draft(path) as draft:
        for piece in record.pieces():
            draft.sink.write(piece)
        draft.finish()
        draft.commit(stamp)
