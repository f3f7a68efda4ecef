"""The whole publication of one process, put together and taken apart."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from collector.backoff_controller import BackoffController
from collector.clock import Clock, SystemClock
from collector.errors import DatabaseUnavailable
from collector.exchanges.fxcm.backoff_settings import BackoffSettings
from collector.jobs.published import PublishedTimes
from collector.publication.bar_sink import BarSink
from collector.publication.catching_up import LOOK_SECONDS, CatchingUp
from collector.publication.gate import PublishDataGate
from collector.publication.publisher import RedisPublisher
from collector.publication.redis_link import RedisLink
from collector.publication.sinks import sinks
from collector.publication.supervisor import AsyncStreamSupervisor, Capacities

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import SecretStr

    from collector.backoff import Backoff
    from collector.mongo.client import Database
    from collector.store.store import Store


@asynccontextmanager
async def publication(
    url: SecretStr,
    database: Database,
    store: Store,
    *,
    backoff: Backoff | None = None,
    async_supervisor: bool = True,
    capacities: Capacities | None = None,
    look_seconds: float = LOOK_SECONDS,
    clock: Clock | None = None,
) -> AsyncIterator[RedisPublisher]:
    """Publishes until it is left. Redis may be away, now or at any time."""
    clock = clock or SystemClock()

    def now_seconds() -> float:
        return clock.wall_ms() / 1000

    policy = backoff or BackoffSettings().redis
    link = RedisLink(PublishDataGate(url), BackoffController("redis", policy, clock, random.random))
    published = PublishedTimes(database)
    delivering = sinks(link, BarSink(link, store, published, now_seconds))
    supervisor = (
        AsyncStreamSupervisor(delivering, link, clock, capacities) if async_supervisor else None
    )
    publisher = RedisPublisher(delivering, link, published, supervisor)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(link.close)
        stack.push_async_callback(_last_flush, published)
        if supervisor is not None:
            await stack.enter_async_context(supervisor.running())
        upkeep = CatchingUp(published, publisher, link, now_seconds, look_seconds)
        task = asyncio.create_task(upkeep.keep_going(), name="publication:catching_up")
        try:
            yield publisher
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _last_flush(published: PublishedTimes) -> None:
    with suppress(DatabaseUnavailable):
        await published.flush()
