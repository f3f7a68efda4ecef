"""A feed over connections that end: when it connects again, and what it counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.backoff import Backoff
from collector.clock import ManualClock
from collector.errors import (
    BadRequest,
    CollectorError,
    ConfigError,
    ExchangeUnavailable,
    KeyRefused,
    RateLimited,
)
from collector.exchanges.ticks import PriceTick, SourceCounts
from collector.streams.states import Connection
from collector.streams.tick_feed import TickFeed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.exchanges.ticks import StreamEvent

GONE = ExchangeUnavailable("gone")
TICK = PriceTick("A/B", 1.0, 2.0, 1.0, 1.0)


class Scripted:
    """A source that sends some ticks and then ends as it was told."""

    def __init__(
        self, ticks: int, error: Exception | None = None, refusal: Exception | None = None
    ) -> None:
        self._ticks = ticks
        self._error = error
        self._refusal = refusal
        self.counts = SourceCounts(errors=1, dropped=2)
        self.closed = 0

    async def connect(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        for _ in range(self._ticks):
            yield TICK
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        self.closed += 1


class Stage:
    """A feed over scripted sources; the last one never ends."""

    def __init__(self, *sources: Scripted) -> None:
        self.sources = list(sources)
        self.opened: list[Scripted] = []
        self.pauses: list[float] = []
        self.taken = 0
        self.clock = ManualClock()
        self.feed = TickFeed(
            "x",
            self._open,
            self.clock,
            backoff=Backoff(1.0, 8.0, jitter=0.0),
            spread=lambda: 0.5,
            rest=self._rest,
        )

    def _open(self) -> Scripted:
        if not self.sources:
            raise _OutOfSources
        self.opened.append(self.sources.pop(0))
        return self.opened[-1]

    async def _rest(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def _take(self, event: StreamEvent) -> None:
        self.taken += 1

    async def run(self) -> None:
        with pytest.raises(_OutOfSources):
            await self.feed.run(self._take)


class _OutOfSources(Exception):
    pass


async def test_pauses_grow_until_a_connection_has_lived_for_a_minute() -> None:
    class Lasting(Scripted):
        def __init__(self, seconds: float) -> None:
            super().__init__(2, GONE)
            self._seconds = seconds

        async def __aiter__(self) -> AsyncIterator[StreamEvent]:
            yield TICK
            stage.clock.advance(self._seconds)
            raise GONE

    stage = Stage(
        Scripted(0, refusal=GONE),
        Scripted(3, GONE),
        Lasting(59),
        Lasting(60),
        Scripted(0, GONE),
    )
    await stage.run()
    assert stage.pauses == [1.0, 2.0, 4.0, 1.0, 2.0]
    assert stage.taken == 5
    assert stage.feed.reconnects == 5
    assert all(source.closed for source in stage.opened)
    assert (stage.feed.errors, stage.feed.dropped) == (5, 10)
    assert stage.feed.connection is Connection.CLOSED


async def test_a_spent_budget_is_waited_for() -> None:
    stage = Stage(Scripted(0, refusal=RateLimited("x", 7_000, "window")))
    await stage.run()
    assert stage.pauses == [7.0]


@pytest.mark.parametrize("refusal", [KeyRefused("wrong password"), ConfigError("no password")])
async def test_a_key_that_an_operator_may_replace_is_waited_for(refusal: CollectorError) -> None:
    stage = Stage(Scripted(0, refusal=refusal))
    await stage.run()
    assert len(stage.pauses) == 1
    assert stage.feed.connection is Connection.CLOSED


async def test_what_another_connection_would_not_change_comes_out() -> None:
    stage = Stage(Scripted(0, refusal=BadRequest("no such symbol")))
    with pytest.raises(BadRequest):
        await stage.feed.run(lambda _: None)


async def test_a_connection_that_is_silent_for_a_minute_is_ended() -> None:
    class Silent(Scripted):
        async def __aiter__(self) -> AsyncIterator[StreamEvent]:
            self.ended = asyncio.Event()
            yield TICK
            await self.ended.wait()
            raise ExchangeUnavailable("closed")

        async def close(self) -> None:
            await super().close()
            self.ended.set()

    silent = Silent(1)
    stage = Stage(silent)
    running = asyncio.create_task(stage.run())
    while stage.feed.connection is not Connection.LIVE:
        await asyncio.sleep(0)
    stage.clock.advance(59)
    await stage.feed.renew_when_silent(59.0)
    assert not silent.closed
    stage.clock.advance(2)
    await stage.feed.renew_when_silent(3.0)  # A tick came meanwhile.
    assert not silent.closed
    await stage.feed.renew_when_silent(61.0)
    await running
    assert silent.closed
    assert stage.pauses == []  # It was ended on purpose: no failure, and nothing to wait for.
    assert stage.feed.failures == 0
