"""Keeps a tick source connected: opens it, reads it, and opens another when it has ended."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.backoff import Backoff
from collector.errors import (
    CollectorError,
    ConfigError,
    ExchangeUnavailable,
    KeyRefused,
    RetryLater,
)
from collector.exchanges.ticks import Turn
from collector.streams.states import RECOVERING_SECONDS, Connection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.clock import Clock
    from collector.exchanges.ticks import StreamEvent, TickSource

RECONNECT = Backoff(base_seconds=0.5, max_seconds=60.0)
PROVEN_SECONDS = 60.0
"""How long a connection has to bring prices before the failures ahead of it are forgotten."""

_log = logs.get("collector.streams")


class TickFeed:
    """One stream of events over any number of connections. `run` reads until it is cancelled."""

    def __init__(
        self,
        exchange_id: str,
        open_source: Callable[[], TickSource],
        clock: Clock,
        *,
        backoff: Backoff = RECONNECT,
        spread: Callable[[], float] = random.random,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._exchange_id = exchange_id
        self._open = open_source
        self._clock = clock
        self._backoff = backoff
        self._spread = spread
        self._rest = rest
        self._source: TickSource | None = None
        self._connected_at = 0.0
        self._live_at: float | None = None
        self._is_renewing = False
        self._ended_errors = self._ended_dropped = 0
        self.connection = Connection.CONNECTING
        self.reconnects = 0
        self.failures = 0
        """In a row, without a minute of prices between them."""
        self.last_error: str | None = None

    @property
    def errors(self) -> int:
        """Messages of all connections that could not be read."""
        return self._ended_errors + (self._source.counts.errors if self._source else 0)

    @property
    def dropped(self) -> int:
        """Ticks that the sources threw away."""
        return self._ended_dropped + (self._source.counts.dropped if self._source else 0)

    async def run(self, take: Callable[[StreamEvent], None]) -> None:
        """Hands every event to `take`. Raises what no other connection would change."""
        try:
            while True:
                try:
                    await self._read(take)
                    error: CollectorError = ExchangeUnavailable("the connection was closed")
                except (RetryLater, KeyRefused, ConfigError) as failure:
                    # An operator may replace a key or a password while the stream waits.
                    error = failure
                if self._is_renewing:
                    self._is_renewing = False
                else:
                    await self._rest(self._failed(error))
                self.connection = Connection.CONNECTING
                self.reconnects += 1
                metrics.STREAM_RECONNECTS.labels(self._exchange_id).inc()
        finally:
            self.connection = Connection.CLOSED

    async def renew_when_silent(self, silence: float | None) -> None:
        """Ends a connection that has sent nothing for a minute, so that another is opened."""
        waited = self._clock.monotonic() - self._connected_at
        if silence is not None:
            waited = min(waited, silence)
        connected = self.connection in (Connection.CONNECTED, Connection.LIVE)
        if self._source is not None and connected and waited > RECOVERING_SECONDS:
            _log.warning("stream_silent", exchange=self._exchange_id, seconds=round(waited))
            await self.renew()

    async def renew(self) -> None:
        """Ends the connection there is; `run` opens another at once, for what is wanted now."""
        if self._source is not None:
            self._is_renewing = True
            await self._source.close()

    async def _read(self, take: Callable[[StreamEvent], None]) -> None:
        source = self._source = self._open()
        self._live_at = None
        try:
            await source.connect()
            self.connection, self._connected_at = Connection.CONNECTED, self._clock.monotonic()
            turn = Turn()
            async for event in source:
                if self.connection is not Connection.LIVE:
                    self._begun()
                take(event)
                await turn.share()
        finally:
            await source.close()
            self._ended_errors += source.counts.errors
            self._ended_dropped += source.counts.dropped
            self._source = None

    def _begun(self) -> None:
        self.connection, self.last_error = Connection.LIVE, None
        self._live_at = self._clock.monotonic()
        _log.info("stream_live", exchange=self._exchange_id, reconnects=self.reconnects)

    def _failed(self, error: CollectorError) -> float:
        """Notes a failure; how long to wait before the next attempt."""
        if self._live_at is not None and self._clock.monotonic() - self._live_at >= PROVEN_SECONDS:
            self.failures = 0
        self.failures += 1
        self.connection, self.last_error = Connection.BROKEN, str(error)
        pause = self._backoff.delay(self.failures, self._spread())
        if isinstance(error, RetryLater) and error.retry_after_ms is not None:
            pause = max(pause, error.retry_after_ms / 1000)
        _log.warning(
            "stream_broken",
            exchange=self._exchange_id,
            error=str(error),
            failures=self.failures,
            pause_seconds=round(pause, 1),
        )
        return pause
