"""How a message of each kind is delivered. False: Redis is away, try the same message later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from collector.publication import payloads
from collector.publication.channels import HEARTBEAT, MARKET_STATUS, OHLCV
from collector.publication.supervisor import PRICE_SNAPSHOTS

if TYPE_CHECKING:
    from collector.publication.bar_sink import BarSink
    from collector.publication.message import Publication
    from collector.publication.redis_link import RedisLink

Sink = Callable[[Any], Awaitable[bool]]


def sinks(link: RedisLink, bars: BarSink) -> dict[str, Sink]:
    """By the name of the queue."""

    def of(written: Callable[[Any], Publication]) -> Sink:
        async def deliver(message: Any) -> bool:
            return await link.publish(written(message)) is not None

        return deliver

    return {
        OHLCV: bars.deliver,
        HEARTBEAT: of(payloads.heartbeat),
        MARKET_STATUS: of(payloads.market_status),
        PRICE_SNAPSHOTS: of(payloads.prices),
    }
