"""AsyncStreamSupervisor: four bounded queues and a task for each, between producers and Redis.

A producer hands over a message and goes on; it never waits for Redis. The task of a queue delivers
its messages one after the other. While Redis is away the task waits out the pause of the back-off
with its message in hand, and the queue fills: bars are then refused (`SinkBackpressure`), of
everything else the last is kept.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.publication.channels import HEARTBEAT, MARKET_STATUS, OHLCV
from collector.publication.stream_queue import StreamQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.clock import Clock
    from collector.publication.redis_link import RedisLink
    from collector.publication.sinks import Sink

PRICE_SNAPSHOTS = "price_snapshots"
QUEUES = (OHLCV, HEARTBEAT, MARKET_STATUS, PRICE_SNAPSHOTS)
STOP_SECONDS = 3.0
"""How long messages that wait may still be delivered when the process stops."""

_log = logs.get("collector.publication")


@dataclass(frozen=True, slots=True)
class Capacities:
    """How many messages each queue holds."""

    ohlcv: int = 2_000
    heartbeat: int = 64
    market_status: int = 64
    price_snapshots: int = 64

    def of(self, name: str) -> int:
        return int(getattr(self, name))


class AsyncStreamSupervisor:
    """`sinks` deliver the messages of each queue; False from one means that Redis is away."""

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        link: RedisLink,
        clock: Clock,
        capacities: Capacities | None = None,
    ) -> None:
        sizes = capacities or Capacities()
        self._sinks = sinks
        self._link = link
        self._clock = clock
        self._queues: dict[str, StreamQueue[Any]] = {
            name: StreamQueue(name, sizes.of(name), keeps_last=name != OHLCV) for name in QUEUES
        }
        self._states = dict.fromkeys(QUEUES, "stopped")
        self._busy_at = dict.fromkeys(QUEUES, clock.monotonic())

    def put(self, name: str, message: Any, key: Any = None) -> None:
        """Takes over a message. Raises SinkBackpressure when the queue is full."""
        self._queues[name].put(message, key)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With its tasks. At the end, what waits is delivered if Redis takes it soon."""
        tasks = [
            asyncio.create_task(self._consume(name), name=f"publication:{name}") for name in QUEUES
        ]
        try:
            yield
            await self._delivered()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for name in QUEUES:
                self._states[name] = "stopped"
                self._queues[name].abandon()

    def shown(self) -> dict[str, Any]:
        """`context.supervisor` of the heartbeat."""
        totals = {name: queue.totals() for name, queue in self._queues.items()}
        return {
            "total_enqueued": sum(each.enqueued for each in totals.values()),
            "total_processed": sum(each.processed for each in totals.values()),
            "total_dropped": sum(each.dropped for each in totals.values()),
            "queue_depth_total": sum(each.depth for each in totals.values()),
            "backpressure_events": sum(each.backpressure_events for each in totals.values()),
            "queues": {name: asdict(each) for name, each in totals.items()},
            "tasks": {name: self._task(name) for name in QUEUES},
        }

    def _task(self, name: str) -> dict[str, Any]:
        idle = self._clock.monotonic() - self._busy_at[name]
        return {"state": self._states[name], "idle_seconds": round(idle, 3)}

    async def _consume(self, name: str) -> None:
        queue = self._queues[name]
        self._states[name] = "running"
        while True:
            key, message = await queue.take()
            try:
                while not await self._sinks[name](message):
                    self._states[name] = "paused"
                    await self._link.resumed()
                    message = queue.newest(key, message)
            except Exception as error:  # noqa: BLE001 - one message must not end the task
                queue.failed()
                log_failure(name, error)
            else:
                queue.done()
            self._states[name] = "running"
            self._busy_at[name] = self._clock.monotonic()

    async def _delivered(self) -> None:
        """As long as Redis is there, and not for long."""
        if self._link.backoff.state.active:
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                for queue in self._queues.values():
                    await queue.settled()
        except TimeoutError:
            return


def log_failure(queue: str, error: Exception) -> None:
    """A message that could not be delivered, for another reason than that Redis is away."""
    _log.warning(
        "publication_failed", queue=queue, kind=type(error).__name__, error=str(error)[:300]
    )
