"""The supervisor of publication: bounded queues, backpressure, back-off, and honest totals."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.backoff_controller import BackoffController
from collector.clock import ManualClock
from collector.errors import SinkBackpressure
from collector.publication.channels import HEARTBEAT, OHLCV
from collector.publication.redis_link import RedisLink
from collector.publication.supervisor import (
    PRICE_SNAPSHOTS,
    QUEUES,
    AsyncStreamSupervisor,
    Capacities,
)
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class NoRedis:
    """Never asked here: the sinks of these tests deliver by themselves."""

    async def run(self, key: str, arguments: Sequence[str | bytes]) -> Sequence[bytes | int]:
        raise ConnectionError

    async def close(self) -> None:
        return


class Stage:
    """A supervisor whose sinks note what they deliver, unless Redis is away."""

    def __init__(self, **capacities: int) -> None:
        self.clock = ManualClock()
        policy = Backoff(base_seconds=5, jitter=0)
        self.backoff = BackoffController("redis", policy, self.clock, lambda: 0.5)
        # The manual clock does not move while a task rests: it looks again at once.
        self.link = RedisLink(NoRedis(), self.backoff, lambda _: asyncio.sleep(0.001))
        self.away = False
        self.delivered: list[tuple[str, Any]] = []
        self.supervisor = AsyncStreamSupervisor(
            {name: self._sink(name) for name in QUEUES},
            self.link,
            self.clock,
            Capacities(**capacities),
        )

    def _sink(self, name: str) -> Any:
        async def deliver(message: Any) -> bool:
            if isinstance(message, Exception):
                raise message
            if self.away:
                self.backoff.fail("ConnectionError")
                return False
            self.backoff.success()
            self.delivered.append((name, message))
            return True

        return deliver

    def state(self, name: str) -> str:
        return str(self.supervisor.shown()["tasks"][name]["state"])

    async def paused(self, name: str) -> None:
        await until(lambda: self.state(name) == "paused", f"{name} is paused")

    async def empty(self) -> None:
        await until(lambda: not self.supervisor.shown()["queue_depth_total"], "queues are empty")

    def back(self) -> None:
        """Redis is there again; the pause ends at the next look at the clock."""
        self.away = False
        self.backoff.success()


@asynccontextmanager
async def stage(**capacities: int) -> AsyncIterator[Stage]:
    made = Stage(**capacities)
    async with made.supervisor.running():
        yield made


async def test_every_message_is_delivered_in_the_order_of_its_queue() -> None:
    async with stage() as s:
        for number in range(20):
            s.supervisor.put(OHLCV, number)
        await s.empty()
        assert s.delivered == [(OHLCV, number) for number in range(20)]
        shown = s.supervisor.shown()
        assert (shown["total_enqueued"], shown["total_processed"]) == (20, 20)
        assert (shown["total_dropped"], shown["backpressure_events"]) == (0, 0)
        assert [shown["tasks"][name]["state"] for name in QUEUES] == ["running"] * 4


async def test_a_full_queue_refuses_bars_and_keeps_those_it_has() -> None:
    async with stage(ohlcv=3) as s:
        s.away = True
        s.supervisor.put(OHLCV, 0)
        await s.paused(OHLCV)
        s.supervisor.put(OHLCV, 1)
        s.supervisor.put(OHLCV, 2)
        with pytest.raises(SinkBackpressure):
            s.supervisor.put(OHLCV, 3)
        shown = s.supervisor.shown()
        assert (shown["backpressure_events"], shown["total_dropped"]) == (1, 0)
        assert shown["queues"][OHLCV]["depth"] == 3
        s.back()
        await s.empty()
        assert s.delivered == [(OHLCV, 0), (OHLCV, 1), (OHLCV, 2)]


async def test_of_price_snapshots_only_the_last_is_published_after_an_outage() -> None:
    async with stage() as s:
        s.away = True
        s.supervisor.put(PRICE_SNAPSHOTS, "fxcm 0", "fxcm")
        await s.paused(PRICE_SNAPSHOTS)
        for number in range(1, 200):
            s.supervisor.put(PRICE_SNAPSHOTS, f"fxcm {number}", "fxcm")
        s.supervisor.put(PRICE_SNAPSHOTS, "binance 7", "binance")
        s.back()
        await s.empty()
        assert s.delivered == [(PRICE_SNAPSHOTS, "fxcm 199"), (PRICE_SNAPSHOTS, "binance 7")]
        shown = s.supervisor.shown()
        assert shown["total_enqueued"] == 201
        assert (shown["total_processed"], shown["total_dropped"]) == (2, 199)


async def test_a_queue_that_is_paused_does_not_hold_up_who_fills_it() -> None:
    async with stage() as s:
        s.away = True
        for number in range(1_000):
            s.supervisor.put(HEARTBEAT, number, "fxcm")
        await s.paused(HEARTBEAT)
        assert s.supervisor.shown()["queues"][HEARTBEAT]["depth"] == 1


async def test_a_message_that_cannot_be_delivered_is_counted_and_the_next_one_is() -> None:
    async with stage() as s:
        s.supervisor.put(OHLCV, ValueError("a defect"))
        s.supervisor.put(OHLCV, 1)
        await s.empty()
        assert s.delivered == [(OHLCV, 1)]
        assert s.supervisor.shown()["total_dropped"] == 1


async def test_idle_seconds_count_from_the_last_message() -> None:
    async with stage() as s:
        s.clock.advance(7)
        s.supervisor.put(OHLCV, 1)
        await s.empty()
        s.clock.advance(2)
        tasks = s.supervisor.shown()["tasks"]
        assert tasks[OHLCV] == {"state": "running", "idle_seconds": 2.0}
        assert tasks[HEARTBEAT] == {"state": "running", "idle_seconds": 9.0}


async def test_what_waits_is_delivered_before_the_end() -> None:
    async with stage() as s:
        for number in range(50):
            s.supervisor.put(OHLCV, number)
    assert len(s.delivered) == 50
    assert s.state(OHLCV) == "stopped"


async def test_an_outage_does_not_hold_up_the_end() -> None:
    async with stage() as s:
        s.away = True
        s.supervisor.put(OHLCV, 0)
        await s.paused(OHLCV)
        s.supervisor.put(OHLCV, 1)
    shown = s.supervisor.shown()
    assert (shown["total_processed"], shown["total_dropped"]) == (0, 2)
    assert shown["queue_depth_total"] == 0
