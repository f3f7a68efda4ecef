"""What producers see: messages go in, and neither Redis nor a full queue ever stops them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.backoff_controller import backoff_diag
from collector.errors import SinkBackpressure
from collector.publication.channels import HEARTBEAT, MARKET_STATUS, OHLCV
from collector.publication.supervisor import PRICE_SNAPSHOTS, log_failure
from collector.streams.heartbeat import HeartbeatContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bson import ObjectId

    from collector.jobs.published import PublishedTimes
    from collector.publication.closed_bars import ClosedBars
    from collector.publication.redis_link import RedisLink
    from collector.publication.sinks import Sink
    from collector.publication.supervisor import AsyncStreamSupervisor
    from collector.streams.publisher import (
        HeartbeatMessage,
        MarketStatusMessage,
        PriceSnapshot,
    )

MOST_BARS_IN_MEMORY = 200
"""Of one message. A series that catches up has more, and those are read from the lake again."""

_log = logs.get("collector.publication")


class RedisPublisher:
    """Implements `collector.streams.publisher.Publisher`, and takes bars from the collecting.

    With a supervisor every message goes into its queue. Without one (`async_supervisor: false`) it
    is sent from the producer's own task; while Redis is paused it is left out, and bars are made up
    for from the lake.
    """

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        link: RedisLink,
        published: PublishedTimes,
        supervisor: AsyncStreamSupervisor | None,
    ) -> None:
        self._sinks = sinks
        self._link = link
        self._published = published
        self._supervisor = supervisor
        self._begun: dict[ObjectId, int] = {}

    async def publish_closed(self, closed: ClosedBars) -> None:
        """Bars that are in the lake. What finds no room is published from there later."""
        begun = self._with_beginning(closed)
        many = len(begun.candles) > MOST_BARS_IN_MEMORY and begun.published_ms is not None
        await self._hand_over(OHLCV, begun.without_candles() if many else begun, None)

    def _with_beginning(self, closed: ClosedBars) -> ClosedBars:
        """A series of which nothing was ever published begins with the first bars handed over.

        That is written at once, so that they are owed whatever becomes of them.
        """
        if closed.published_ms is not None:
            return closed
        if closed.job_id not in self._begun:
            self._begun[closed.job_id] = closed.from_ms
            self._published.note(closed.job_id, closed.from_ms)
        return replace(closed, published_ms=self._begun[closed.job_id])

    async def publish_prices(self, snapshot: PriceSnapshot) -> None:
        if snapshot.prices:
            await self._hand_over(PRICE_SNAPSHOTS, snapshot, snapshot.exchange_id)

    async def publish_heartbeat(self, heartbeat: HeartbeatMessage) -> None:
        await self._hand_over(HEARTBEAT, heartbeat, heartbeat.exchange_id)

    async def publish_market_status(self, status: MarketStatusMessage) -> None:
        await self._hand_over(MARKET_STATUS, status, status.exchange_id)

    def heartbeat_context(self, exchange_id: str) -> HeartbeatContext:
        """What the publication adds to a heartbeat."""
        return HeartbeatContext(
            diag={"backoff": self.backoff_shown()}, supervisor=self.supervisor_shown()
        )

    def supervisor_shown(self) -> dict[str, Any] | None:
        """`context.supervisor` of the heartbeat; None without queues."""
        return None if self._supervisor is None else self._supervisor.shown()

    def backoff_shown(self) -> dict[str, Any]:
        """The part `redis` of `context.diag.backoff`."""
        return backoff_diag([self._link.backoff])

    async def _hand_over(self, name: str, message: Any, key: str | None) -> None:
        try:
            if self._supervisor is None:
                await self._sinks[name](message)
            else:
                self._supervisor.put(name, message, key)
        except SinkBackpressure as full:
            _log.debug("publication_backpressure", queue=name, error=str(full))
        except Exception as error:  # noqa: BLE001 - what publishes must not end what collects
            log_failure(name, error)
