"""The connection to Redis: one publication at a time, and a pause after failures.

A call never waits out a pause: while Redis is paused it returns None at once, and the caller
decides what to do with its message. Whatever goes wrong with Redis ends here as None too.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

from collector import logs, metrics
from collector.mongo.change_stream import keeping_cancellation
from collector.publication.gate import TIMEOUT_SECONDS, GateOffer, GateVerdict, PublishDataGate
from collector.publication.message import Publication

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic import SecretStr

    from collector.backoff_controller import BackoffController
    from collector.publication.gate import Ruling

TRIED = "collector:doctor"
"""The channel on which it is tried whether Redis takes messages."""

_log = logs.get("collector.publication")


class Gate(Protocol):
    """What decides on each publication (PublishDataGate)."""

    async def admit(self, publication: Publication) -> Ruling: ...

    async def close(self) -> None: ...


class RedisLink:
    """Publishes through the gate's script. `backoff` is the controller named `redis`."""

    def __init__(
        self,
        gate: Gate,
        backoff: BackoffController,
        rest: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._gate = gate
        self.backoff = backoff
        self._rest = rest
        self._turn = asyncio.Lock()

    async def publish(self, publication: Publication) -> Ruling | None:
        """What the gate decided, or None when Redis is away: nothing is known of this message."""
        # In turn, so that one outage is one failure however many messages wait for it.
        async with self._turn:
            if self.backoff.paused:
                return None
            try:
                # The client takes a cancellation for a broken connection, and the task would go on.
                with keeping_cancellation():
                    async with asyncio.timeout(TIMEOUT_SECONDS):
                        decided = await self._gate.admit(publication)
            except Exception as error:  # noqa: BLE001 - a Redis of whatever kind must not end a task
                self._failed(error)
                return None
            self._succeeded()
        if decided.verdict is GateVerdict.ADMITTED and decided.new:
            messages = decided.new if publication.envelope is None else 1
            metrics.PUBLISHED.labels(publication.channel).inc(messages)
        elif decided.verdict is GateVerdict.STALE_FENCE:
            metrics.PUBLICATION_REFUSED.labels(publication.channel).inc()
        return decided

    async def resumed(self) -> None:
        """Returns when the pause is over, if there is one."""
        while self.backoff.paused:
            await self._rest(self.backoff.remaining_seconds)

    async def close(self) -> None:
        await self._gate.close()

    def _failed(self, error: Exception) -> None:
        first = not self.backoff.state.active
        pause = self.backoff.fail(error)
        if first:
            _log.warning(
                "redis_away",
                kind=type(error).__name__,
                error=str(error)[:300],
                pause_seconds=round(pause, 1),
            )

    def _succeeded(self) -> None:
        if self.backoff.state.active:
            _log.warning("redis_back", failures=self.backoff.state.fail_count)
            self.backoff.success()


async def refusal(url: SecretStr) -> str | None:
    """Why nothing could be published now; None when Redis takes a message."""
    try:
        gate = PublishDataGate(url)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await _try(gate)
        finally:
            await gate.close()
    except Exception as error:  # noqa: BLE001 - a Redis of whatever kind; what it says is the answer
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return None


async def _try(gate: PublishDataGate) -> None:
    at, admitted = time.time_ns() // 1_000_000, 0
    while not admitted:
        offer = GateOffer(0, at, at, at + 1, (at,))
        ruling = await gate.admit(Publication(f"{TRIED}:mark", TRIED, offer, (b"{}",)))
        # The mark may come from a machine whose clock is ahead.
        at, admitted = ruling.mark.until, ruling.new
