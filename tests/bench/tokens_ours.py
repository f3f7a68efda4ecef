"""Three ways of taking a token from a connector document: two attempts, our statement, our limiter.

Each opens to `acquire()`, which returns whether there was a token.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pymongo import ReturnDocument

from collector.connectors.connector import Limits
from collector.connectors.grant import Ask, answer_projection, grant_filter, grant_pipeline
from collector.connectors.grant_window import Want
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import COARSE_BINS
from collector.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from collector.mongo.client import Database

    Acquire = Callable[[], Awaitable[bool]]
    Opener = Callable[[Database, str], AbstractAsyncContextManager[Acquire]]

PLENTY = 1_000_000_000
PERIOD_MS = 60_000


async def spend(acquire: Acquire, waiters: int, seconds: float, *, expected: bool = True) -> float:
    """Answers a second that `waiters` coroutines get, each asking again as soon as it has one."""
    answers = 0
    started = time.monotonic()
    until = started + seconds

    async def wait() -> None:
        nonlocal answers
        while time.monotonic() < until:
            answer = await acquire()
            answers += answer is expected

    await asyncio.gather(*(wait() for _ in range(waiters)))
    return answers / (time.monotonic() - started)


@asynccontextmanager
async def two_attempts(database: Database, exchange_id: str) -> AsyncIterator[Acquire]:
    """As first specified: reset and consume, else consume, else read; on the client's clock."""
    connectors = database.connectors

    async def acquire() -> bool:
        now_ms = round(time.time() * 1000)
        fresh_window = {
            "rate_limit_usage": 1,
            "rate_limit_window_start": now_ms,
            "rate_limit_reset_at": now_ms + PERIOD_MS,
        }
        reset = await connectors.update_one(
            {"exchange_id": exchange_id, "rate_limit_reset_at": {"$lte": now_ms}},
            {"$set": fresh_window},
        )
        if reset.modified_count:
            return True
        consumed = await connectors.update_one(
            {
                "exchange_id": exchange_id,
                "rate_limit_reset_at": {"$gt": now_ms},
                "$expr": {"$lt": ["$rate_limit_usage", "$rate_limit"]},
            },
            {"$inc": {"rate_limit_usage": 1}},
        )
        if consumed.modified_count:
            return True
        await connectors.find_one({"exchange_id": exchange_id}, {"rate_limit_reset_at": 1})
        return False

    yield acquire


@asynccontextmanager
async def one_command(database: Database, exchange_id: str) -> AsyncIterator[Acquire]:
    """Our statement, one token a command: what there is without coalescing."""

    connector = await ConnectorRegistry(database).get(exchange_id)

    async def acquire() -> bool:
        nonce = uuid.uuid4().hex
        answer = await database.connectors.find_one_and_update(
            grant_filter(connector),
            grant_pipeline(connector, Ask([Want()], nonce)),
            projection=answer_projection(nonce, 1),
            return_document=ReturnDocument.AFTER,
        )
        return answer is not None and answer["limiter"]["nonce"] == nonce

    yield acquire


@asynccontextmanager
async def coalesced(database: Database, exchange_id: str) -> AsyncIterator[Acquire]:
    """What a worker uses."""
    async with Limiter(database) as limiter:

        async def acquire() -> bool:
            try:
                await limiter.acquire(exchange_id)
            except RateLimited:
                return False
            return True

        yield acquire


SEED, ONE, COALESCED = "two attempts (seed)", "one command a token", "coalesced"
OURS: dict[str, Opener] = {SEED: two_attempts, ONE: one_command, COALESCED: coalesced}


async def make_connectors(database: Database, limit: int) -> None:
    """A connector for each way, named after it, with `COARSE_BINS` tokens already used.

    Ours have them spread over every bin of the sliding window, as after a whole period of work.
    """
    registry = ConnectorRegistry(database)
    for name in OURS:
        connector, _ = await registry.ensure(name, Limits(limit, PERIOD_MS))
        bin_ms = connector.all_windows[0].bin_ms
        now_ms = database.server_clock.now_ms()
        current = now_ms - now_ms % bin_ms
        bins = [{"t": current - age * bin_ms, "n": 1} for age in range(COARSE_BINS, 0, -1)]
        window = {"unit": "requests", "period_ms": PERIOD_MS, "t": current, "cur": 0}
        window |= {"sum": COARSE_BINS, "bins": bins}
        fields = {
            "rate_limit_usage": COARSE_BINS,
            "rate_limit_window_start": now_ms,
            "rate_limit_reset_at": now_ms + PERIOD_MS,
        }
        if name != SEED:
            fields["limiter"] = {"clock": now_ms, "nonce": "", "granted": 0, "windows": [window]}
        await database.connectors.update_one({"exchange_id": name}, {"$set": fields})
