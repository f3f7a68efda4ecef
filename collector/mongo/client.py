"""The one place that opens MongoDB.

Four things are added to the driver and nothing is hidden: a fair queue for its connections, one
translation of "cannot reach it" into `DatabaseUnavailable`, one log line when that begins and one
when it ends however many callers noticed, and cancellation that the driver cannot swallow.
"""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pymongo import AsyncMongoClient
from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from collector import logs, metrics
from collector.backoff import Backoff
from collector.clock import Clock, SystemClock
from collector.errors import DatabaseUnavailable
from collector.mongo.server_clock import ServerClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType

    from pymongo.asynchronous.change_stream import AsyncDatabaseChangeStream
    from pymongo.asynchronous.collection import AsyncCollection
    from pymongo.asynchronous.database import AsyncDatabase
    from pymongo.results import BulkWriteResult, DeleteResult, InsertManyResult, UpdateResult

Document = dict[str, Any]
T = TypeVar("T")

NOW_MS: Document = {"$toLong": "$$NOW"}
"""The server's clock in epoch milliseconds, inside a statement."""

WAKE: Document = {"$rand": {}}
"""What a statement sets `wake` to, for the workers' change streams to notice.

One number and not a subdocument: a stream reports a changed part of a subdocument under a name
with a dot in it, which its filter cannot match.
"""

OUTAGE = Backoff(base_seconds=0.2, max_seconds=5.0)
"""How long to wait between two looks for a MongoDB that is away."""

_log = logs.get("collector.mongo")
# Stepping down, shutting down, no primary yet: the server says "not now", not "no".
_PASSING_CODES = frozenset({64, 89, 91, 133, 189, 10058, 10107, 11600, 11602, 13435, 13436})


class Database:
    """One database of one deployment, opened once in a process."""

    def __init__(self, uri: str, name: str, *, pool: int = 64, clock: Clock | None = None) -> None:
        self._client: AsyncMongoClient[Document] = AsyncMongoClient(
            uri,
            appname="collector",
            maxPoolSize=pool,
            tz_aware=True,
            w="majority",
            journal=True,
            wTimeoutMS=10_000,
            retryWrites=True,
            retryReads=True,
            connectTimeoutMS=3_000,
            serverSelectionTimeoutMS=3_000,
            socketTimeoutMS=10_000,
        )
        self._raw: AsyncDatabase[Document] = self._client[name]
        self._clock = clock or SystemClock()
        self.server_clock = ServerClock(self._clock)
        # The driver's own pool starves most waiters once more want a connection than there are
        # (28 of 32, measured); asyncio's semaphore is first come, first served. Two connections
        # stay free for the change stream and for monitoring.
        self._fair = asyncio.Semaphore(max(1, pool - 2))
        self._down_since: float | None = None
        self.connectors = Collection(self, "connectors")
        self.jobs = Collection(self, "jobs")
        self.job_runs = Collection(self, "job_runs")
        self.markets = Collection(self, "markets")
        self.reports = Collection(self, "reports")
        self.tickers = Collection(self, "tickers")
        self.workers = Collection(self, "workers")
        self.system = Collection(self, "system")

    async def __aenter__(self) -> Database:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.close()

    @property
    def raw(self) -> AsyncDatabase[Document]:
        """The driver's own database, for what runs once: migrations, tests, benchmarks."""
        return self._raw

    async def read_server_clock(self) -> datetime:
        """Asks the server for its time and sets `server_clock` by it."""
        sent = self._clock.monotonic()
        answer = await self.fairly(
            self._raw.command, "hello", codec_options=self._raw.codec_options
        )
        now: datetime = answer["localTime"]
        self.server_clock.anchor(now, sent)
        return now

    async def reach(self) -> None:
        """Waits for MongoDB, however long: a fleet may start in any order."""
        failures = 0
        while True:
            try:
                await self.read_server_clock()
                return
            except DatabaseUnavailable:
                failures += 1
                await asyncio.sleep(OUTAGE.delay(failures, random.random()))

    async def watch(
        self, pipeline: Sequence[Mapping[str, Any]]
    ) -> AsyncDatabaseChangeStream[Document]:
        """A change stream on this database. The caller closes it."""
        return await self._raw.watch(list(pipeline), max_await_time_ms=1_000)

    async def fairly(self, operation: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """Runs one driver call in turn, and keeps the account of outages."""
        async with self._fair:
            try:
                with keeping_cancellation():
                    result = await operation(*args, **options)
            except PyMongoError as error:
                if not _means_unreachable(error):
                    raise
                self._note_outage(error)
                raise DatabaseUnavailable(
                    f"MongoDB cannot be reached: {_first_line(error)}"
                ) from error
        if self._down_since is not None:
            self._note_recovery()
        return result

    def _note_outage(self, error: PyMongoError) -> None:
        if self._down_since is None:
            self._down_since = self._clock.monotonic()
            metrics.DATABASE_OUTAGES.inc()
            _log.warning("mongodb_unreachable", error=_first_line(error))

    def _note_recovery(self) -> None:
        if self._down_since is not None:
            seconds = self._clock.monotonic() - self._down_since
            self._down_since = None
            _log.warning("mongodb_back", seconds_away=round(seconds, 1))


class Collection:
    """The driver's collection, with every call in the fair queue. Same names, same arguments."""

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        self._fairly = database.fairly
        self._raw: AsyncCollection[Document] = database.raw[name]

    async def find_one(self, *args: Any, **options: Any) -> Document | None:
        return await self._fairly(self._raw.find_one, *args, **options)

    async def find(self, *args: Any, **options: Any) -> list[Document]:
        """The whole result: give it a `limit`."""
        return await self._fairly(self._raw.find(*args, **options).to_list)

    async def aggregate(
        self, pipeline: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Document]:
        async def run() -> list[Document]:
            return await (await self._raw.aggregate(list(pipeline), **options)).to_list()

        return await self._fairly(run)

    async def find_one_and_update(self, *args: Any, **options: Any) -> Document | None:
        found: Document | None = await self._fairly(self._raw.find_one_and_update, *args, **options)
        return found

    async def update_one(self, *args: Any, **options: Any) -> UpdateResult:
        return await self._fairly(self._raw.update_one, *args, **options)

    async def update_many(self, *args: Any, **options: Any) -> UpdateResult:
        return await self._fairly(self._raw.update_many, *args, **options)

    async def insert_many(self, documents: Sequence[Document], **options: Any) -> InsertManyResult:
        return await self._fairly(self._raw.insert_many, documents, **options)

    async def bulk_write(self, requests: Sequence[Any], **options: Any) -> BulkWriteResult:
        return await self._fairly(self._raw.bulk_write, requests, **options)

    async def delete_one(self, *args: Any, **options: Any) -> DeleteResult:
        return await self._fairly(self._raw.delete_one, *args, **options)

    async def delete_many(self, *args: Any, **options: Any) -> DeleteResult:
        return await self._fairly(self._raw.delete_many, *args, **options)

    async def count_documents(self, *args: Any, **options: Any) -> int:
        return await self._fairly(self._raw.count_documents, *args, **options)


@contextmanager
def keeping_cancellation() -> Iterator[None]:
    """Raises CancelledError at the end of the block when the driver has swallowed one.

    The driver takes a cancelled read for a broken connection and repeats it: the task that was
    cancelled would go on as if nothing had happened, and whoever waits for its end waits for ever.
    """
    task = asyncio.current_task()
    requests = task.cancelling() if task else 0
    try:
        yield
    finally:
        if task and task.cancelling() > requests:
            raise asyncio.CancelledError


def _means_unreachable(error: PyMongoError) -> bool:
    if isinstance(error, ConnectionFailure | WTimeoutError | ExecutionTimeout):
        return True
    if isinstance(error, BulkWriteError):
        # Written, but not confirmed by a majority in time.
        return not error.details.get("writeErrors")
    return isinstance(error, OperationFailure) and error.code in _PASSING_CODES


def _first_line(error: Exception) -> str:
    """What happened, without the driver's settings and its list of servers."""
    return re.split(r",? \(configured timeouts:|, Timeout:|\n", str(error))[0][:300]
