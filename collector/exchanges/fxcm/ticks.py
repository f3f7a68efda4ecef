"""FXCM's ticks behind the port: an adapter over the session that the process holds.

The client's queue outlives logins; this source ends with the connection that it has subscribed to,
also when the SDK reconnects by itself, so that the feed above subscribes again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from collector import logs
from collector.errors import ExchangeUnavailable
from collector.exchanges.ticks import PriceTick, SourceCounts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.exchanges.fxcm.client import FxcmClient
    from collector.exchanges.ticks import StreamEvent, TickRequest

LOOK_SECONDS = 1.0
"""How often a silent source looks whether its session is still there."""


_log = logs.get("collector.fxcm")


class LoginOwner(Protocol):
    """The holder of the session."""

    async def client(self) -> FxcmClient:
        """Logged in. Raises why there is no login."""


class FxcmTicks:
    """The ticks of one connection of a session, which outlives both."""

    def __init__(self, owner: LoginOwner, wanted: TickRequest) -> None:
        self._owner = owner
        self._wanted = wanted
        self._client: FxcmClient | None = None
        self._connection: int | None = None
        self._before = (0, 0)
        self.counts = SourceCounts()

    async def connect(self) -> None:
        """Logs in if there is no session, and subscribes to the offers."""
        client = await self._owner.client()
        self._before, self._connection = _lost(client), client.connection
        if self._connection is None:
            raise ExchangeUnavailable("fxcm: the SDK is reconnecting")
        await client.subscribe(self._wanted.symbols)
        self._client = client
        _log.info("fxcm_offers_subscribed", symbols=len(self._wanted.symbols))

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        client = self._client
        while client is not None and client is self._client and self._is_connected(client):
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    ticks = await client.ticks.take()
            except TimeoutError:
                ticks = ()
            self._count(client)
            for tick in ticks:
                at, received = tick.time_ms / 1000, tick.received_ms / 1000
                yield PriceTick(tick.instrument, tick.bid, tick.ask, at, received)
        raise ExchangeUnavailable("fxcm: the connection has ended")

    def _is_connected(self, client: FxcmClient) -> bool:
        """Whether it is the connection that was subscribed to."""
        return client.connection == self._connection

    async def close(self) -> None:
        self._client = None

    def _count(self, client: FxcmClient) -> None:
        errors, dropped = _lost(client)
        self.counts.errors = errors - self._before[0]
        self.counts.dropped = dropped - self._before[1]


def _lost(client: FxcmClient) -> tuple[int, int]:
    """Ticks without a price, and ticks thrown away, since the client was made."""
    counts = client.ticks.counts
    return counts.incomplete, counts.dropped_in_sidecar + counts.dropped_here
