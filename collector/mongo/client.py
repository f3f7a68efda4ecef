"""The one place that opens MongoDB.

Four things are added to the driver and nothing is hidden: a fair queue for its connections, one
translation of "cannot reach it" into `DatabaseUnavailable`, one log line when that begins and one
when it ends however many callers noticed, and cancellation that the driver cannot swallow.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pymongo import AsyncMongoClient
from pymongo.errors import ConfigurationError, PyMongoError
from pymongo.read_concern import ReadConcern

from collector import logs, metrics
from collector.backoff import Backoff
from collector.clock import Clock, SystemClock
from collector.errors import DatabaseRefused, DatabaseUnavailable
from collector.mongo.address import unusable
from collector.mongo.change_stream import Following, keeping_cancellation
from collector.mongo.driver_errors import as_unavailable, first_line
from collector.mongo.server_clock import ServerClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType

    from pymongo.asynchronous.client_session import AsyncClientSession
    from pymongo.asynchronous.collection import AsyncCollection
    from pymongo.asynchronous.database import AsyncDatabase
    from pymongo.results import BulkWriteResult, DeleteResult, InsertManyResult, UpdateResult

Document = dict[str, Any]
T = TypeVar("T")

NOW_MS: Document = {"$toLong": "$$NOW"}
"""The server's clock in epoch milliseconds, inside a statement."""

EPOCH_SECONDS: Document = {"$toLong": {"$divide": [NOW_MS, 1000]}}
"""The same in seconds. A fence that begins there is above all that a lost database has given."""

WAKE: Document = {"$rand": {}}
"""What a statement sets `wake` to, so that the workers' change streams notice it.

One number and not a subdocument: a stream reports a changed part of a subdocument under a name with
a dot in it, which its filter cannot match.
"""

OUTAGE = Backoff(base_seconds=0.2, max_seconds=5.0)
"""How long to wait between two attempts to reach an absent MongoDB."""

_log = logs.get("collector.mongo")
CLOCK_FRESH_SECONDS = 10.0
"""The server's time is requested when no answer has contained it for this long."""
NOTICEABLE_SECONDS = 0.3
STALLS_KEPT = 64


class Database:
    """One database of one deployment, opened once in a process."""

    def __init__(self, uri: str, name: str, *, pool: int = 64, clock: Clock | None = None) -> None:
        self._uri = uri
        self._client = _client(uri, pool)
        self._raw: AsyncDatabase[Document] = self._client[name]
        self._clock = clock or SystemClock()
        self.server_clock = ServerClock(self._clock)
        # The driver's own pool starves most waiters once more want a connection than there are
        # (28 of 32, measured); asyncio's semaphore is first come, first served. Two connections
        # stay free for the change stream and for monitoring.
        self._fair = asyncio.Semaphore(max(1, pool - 2))
        self._down_since: float | None = None
        self._stalls: deque[tuple[float, float]] = deque(maxlen=STALLS_KEPT)
        self.written: set[str] = set()
        """Collections that were written to; whoever acts on it removes them."""
        self.connectors = Collection(self, "connectors")
        self.history_inbox = Collection(self, "history_inbox")
        self.history_networks = Collection(self, "history_networks")
        self.history_transactions = Collection(self, "history_transactions")
        self.jobs = Collection(self, "jobs")
        self.job_runs = Collection(self, "job_runs")
        self.live = Collection(self, "live")
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
        """Requests the server's time and sets `server_clock` by it."""
        sent = self._clock.monotonic()
        answer = await self.fairly(
            self._raw.command, "hello", codec_options=self._raw.codec_options
        )
        now: datetime = answer["localTime"]
        self.server_clock.anchor(now, sent)
        return now

    async def now_ms(self) -> int:
        """The server's clock, read again when no recent answer has contained it."""
        if self.server_clock.is_stale(CLOCK_FRESH_SECONDS):
            await self.read_server_clock()
        return self.server_clock.now_ms()

    @property
    def away_since_ms(self) -> int | None:
        """When MongoDB was found missing, on its own clock; None while it is there."""
        if self._down_since is None or not self.server_clock.is_known:
            return None
        away_ms = (self._clock.monotonic() - self._down_since) * 1000
        return self.server_clock.now_ms() - round(away_ms)

    def stalled(self, within: float, at_least: float) -> bool:
        """Whether a call of the last `within` seconds took or failed after `at_least` seconds.

        In that time leases may have expired because they could not be renewed.
        """
        since = self._clock.monotonic() - within
        return any(ended >= since and took >= at_least for ended, took in self._stalls)

    async def reach(self, patience: float = math.inf) -> None:
        """Waits until MongoDB has a primary: a fleet may start in any order.

        Raises DatabaseUnavailable after `patience` seconds without one, and at once for what
        waiting does not change: DatabaseRefused, or ConfigError for an address that leads nowhere.
        """
        give_up_at = self._clock.monotonic() + patience
        failures = 0
        while True:
            try:
                await self.read_server_clock()
                return
            except ConfigurationError as error:
                raise unusable(self._uri, error) from None
            except DatabaseRefused:
                raise
            except DatabaseUnavailable as error:
                failures += 1
                pause = OUTAGE.delay(failures, random.random())
                if self._clock.monotonic() + pause > give_up_at:
                    waited = f" (waited {patience:g} s for a primary)" if patience else ""
                    raise DatabaseUnavailable(f"{error}{waited}") from error
                if failures == 1 and patience < math.inf:
                    _log.warning("waiting_for_primary", at_most_seconds=patience)
                await asyncio.sleep(pause)

    @asynccontextmanager
    async def changes(
        self, pipeline: Sequence[Mapping[str, Any]], *, resume_after: str | None = None
    ) -> AsyncIterator[Following]:
        """A change stream on this database, from now on or from after a place in it.

        No cancellation is lost on the way: the driver repeats what was cancelled when a stream is
        opened, read or closed.
        """
        after = None if resume_after is None else {"_data": resume_after}
        with keeping_cancellation():
            stream = await self._raw.watch(
                list(pipeline), resume_after=after, max_await_time_ms=1_000
            )
        try:
            yield Following(stream)
        finally:
            with keeping_cancellation():
                await stream.close()

    async def in_transaction(self, work: Callable[[AsyncClientSession], Awaitable[T]]) -> T:
        """What `work` returns, its writes committed together; repeated on write conflicts."""

        async def run() -> T:
            async with self._client.start_session() as session:
                return await session.with_transaction(work, read_concern=ReadConcern("snapshot"))

        return await self.fairly(run)

    async def fairly(self, operation: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """Runs one driver call in turn, and records outages."""
        async with self._fair:
            try:
                with keeping_cancellation(), self._timed():
                    result = await operation(*args, **options)
            except PyMongoError as error:
                unavailable = as_unavailable(error)
                if unavailable is None:
                    raise
                if not isinstance(unavailable, DatabaseRefused):
                    self._note_outage(error)
                raise unavailable from error
        if self._down_since is not None:
            self._note_recovery()
        return result

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            ended = self._clock.monotonic()
            if ended - began >= NOTICEABLE_SECONDS:
                self._stalls.append((ended, ended - began))

    def _note_outage(self, error: PyMongoError) -> None:
        if self._down_since is None:
            self._down_since = self._clock.monotonic()
            metrics.DATABASE_OUTAGES.inc()
            _log.warning("mongodb_unreachable", error=first_line(error))

    def _note_recovery(self) -> None:
        if self._down_since is not None:
            seconds = self._clock.monotonic() - self._down_since
            self._down_since = None
            _log.warning("mongodb_back", seconds_away=round(seconds, 1))


class Collection:
    """The driver's collection, with every call in the fair queue. Same names, same arguments."""

    def __init__(self, database: Database, name: str, *, settled: bool = False) -> None:
        """`settled` reads only what no failover can take back."""
        self.name = name
        self._fairly = database.fairly
        self._written = database.written
        concern = ReadConcern("majority") if settled else None
        self._raw: AsyncCollection[Document] = database.raw[name].with_options(read_concern=concern)

    async def find_one(self, *args: Any, **options: Any) -> Document | None:
        return await self._fairly(self._raw.find_one, *args, **options)

    async def find(self, *args: Any, **options: Any) -> list[Document]:
        """The whole result: give it a `limit`."""
        return await self._fairly(self._raw.find(*args, **options).to_list)

    async def batches(self, size: int, *args: Any, **options: Any) -> AsyncIterator[list[Document]]:
        """The same some documents at a time: for what is too large to be decoded in one go."""
        cursor = self._raw.find(*args, batch_size=size, **options)
        try:
            while batch := await self._fairly(cursor.to_list, size):
                yield batch
        finally:
            with keeping_cancellation():
                await cursor.close()

    async def aggregate(
        self, pipeline: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Document]:
        async def run() -> list[Document]:
            return await (await self._raw.aggregate(list(pipeline), **options)).to_list()

        return await self._fairly(run)

    async def find_one_and_update(self, *args: Any, **options: Any) -> Document | None:
        found: Document | None = await self._write(self._raw.find_one_and_update, *args, **options)
        return found

    async def update_one(self, *args: Any, **options: Any) -> UpdateResult:
        return await self._write(self._raw.update_one, *args, **options)

    async def update_many(self, *args: Any, **options: Any) -> UpdateResult:
        return await self._write(self._raw.update_many, *args, **options)

    async def insert_many(self, documents: Sequence[Document], **options: Any) -> InsertManyResult:
        return await self._write(self._raw.insert_many, documents, **options)

    async def bulk_write(self, requests: Sequence[Any], **options: Any) -> BulkWriteResult:
        return await self._write(self._raw.bulk_write, requests, **options)

    async def delete_one(self, *args: Any, **options: Any) -> DeleteResult:
        return await self._write(self._raw.delete_one, *args, **options)

    async def delete_many(self, *args: Any, **options: Any) -> DeleteResult:
        return await self._write(self._raw.delete_many, *args, **options)

    async def _write(self, operation: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        try:
            return await self._fairly(operation, *args, **options)
        finally:
            # Also when it failed: it may have been carried out without an answer.
            self._written.add(self.name)

    async def count_documents(self, *args: Any, **options: Any) -> int:
        return await self._fairly(self._raw.count_documents, *args, **options)


def _client(uri: str, pool: int) -> AsyncMongoClient[Document]:
    try:
        return AsyncMongoClient(
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
    except (PyMongoError, ValueError, TypeError) as error:
        raise unusable(uri, error) from None
