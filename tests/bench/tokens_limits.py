"""The `limits` library on the same mongod, as strong as we can make it.

Its asyncio storage needs Motor, which is deprecated and not installed; it is given PyMongo's own
asyncio client in Motor's place, the faster of the two. Its synchronous storage runs on threads.
Both start every round with an empty collection: the moving window keeps an entry a token in one
array and slows down as that grows. The best of all of them is what we are held against.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from limits import RateLimitItemPerMinute, strategies
from limits.aio import strategies as aio_strategies
from limits.aio.storage import MongoDBStorage as AsyncStorage
from limits.storage import MongoDBStorage as ThreadedStorage
from pymongo import AsyncMongoClient

from tests.bench.tokens_ours import PLENTY, spend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from collector.mongo.client import Database

    Spend = Callable[[int, float], Awaitable[float]]
    SpendOpener = Callable[[Database, str], AbstractAsyncContextManager[Spend]]

ITEM = RateLimitItemPerMinute(PLENTY)
FIXED, MOVING = "FixedWindowRateLimiter", "MovingWindowRateLimiter"
COUNTER = "SlidingWindowCounterRateLimiter"


def on_asyncio(strategy: str) -> SpendOpener:
    @asynccontextmanager
    async def opened(database: Database, uri: str) -> AsyncIterator[Spend]:
        _stand_in_for_motor()
        storage = AsyncStorage(f"async+{uri}", database_name=database.raw.name)
        limiter = getattr(aio_strategies, strategy)(storage)

        async def acquire() -> bool:
            granted: bool = await limiter.hit(ITEM, "asyncio")
            return granted

        async def spend_it(waiters: int, seconds: float) -> float:
            await _forget(database)
            return await spend(acquire, waiters, seconds)

        yield spend_it
        client: Any = storage.storage
        storage.storage = None  # Its __del__ would close the client without awaiting it.
        await client.close()

    return opened


def on_threads(strategy: str) -> SpendOpener:
    @asynccontextmanager
    async def opened(database: Database, uri: str) -> AsyncIterator[Spend]:
        storage = ThreadedStorage(uri, database_name=database.raw.name)
        limiter = getattr(strategies, strategy)(storage)

        async def spend_it(waiters: int, seconds: float) -> float:
            await _forget(database)
            return await asyncio.to_thread(_spend_in_threads, limiter, waiters, seconds)

        yield spend_it
        storage.storage.close()

    return opened


def _spend_in_threads(limiter: Any, waiters: int, seconds: float) -> float:
    granted: list[int] = []
    started = time.monotonic()
    until = started + seconds

    def wait() -> None:
        count = 0
        while time.monotonic() < until:
            count += limiter.hit(ITEM, "threads")
        granted.append(count)

    threads = [threading.Thread(target=wait) for _ in range(waiters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(granted) / (time.monotonic() - started)


async def _forget(database: Database) -> None:
    for collection in ("counters", "windows"):
        await database.raw[collection].delete_many({})


def _stand_in_for_motor() -> None:
    motor_asyncio = ModuleType("motor.motor_asyncio")
    motor_asyncio.AsyncIOMotorClient = AsyncMongoClient
    sys.modules.setdefault("motor", ModuleType("motor"))
    sys.modules.setdefault("motor.motor_asyncio", motor_asyncio)


LIMITS: dict[str, SpendOpener] = {
    "limits fixed, asyncio": on_asyncio(FIXED),
    "limits moving, asyncio": on_asyncio(MOVING),
    "limits counter, asyncio": on_asyncio(COUNTER),
    "limits fixed, threads": on_threads(FIXED),
    "limits moving, threads": on_threads(MOVING),
}
