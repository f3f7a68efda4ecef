"""Ticks between FXCM's sidecar and whoever reads them: none is lost without being counted."""

from __future__ import annotations

import asyncio

from collector.exchanges.fxcm.tick_queue import TickCounts, TickQueue
from collector.exchanges.fxcm.wire import Batch, Tick


def batch(*numbers: int, dropped: int = 0, events_dropped: int = 0, incomplete: int = 0) -> Batch:
    ticks = tuple(Tick(number, "EUR/USD", 1.0, 2.0, 2.0, 1.0, 1, 0, 0) for number in numbers)
    return Batch(1, dropped, events_dropped, ticks, incomplete=incomplete)


async def test_a_full_queue_keeps_the_newest_and_counts_the_others() -> None:
    queue = TickQueue(3)
    queue.put(batch(1, 2))
    queue.put(batch(3, 4, 5, 6, 7))
    assert [tick.number for tick in await queue.take()] == [5, 6, 7]
    assert queue.counts == TickCounts(delivered=3, dropped_here=4)


async def test_what_sidecars_dropped_adds_up_over_logins() -> None:
    queue = TickQueue(10)
    queue.put(batch(dropped=5, events_dropped=1))
    queue.put(batch(dropped=7, events_dropped=1, incomplete=2))
    queue.new_sidecar()
    queue.put(batch(dropped=3, events_dropped=2))
    assert queue.counts == TickCounts(dropped_in_sidecar=10, events_dropped=3, incomplete=2)


async def test_a_reader_that_stops_leaves_the_rest_to_the_next() -> None:
    queue = TickQueue(10)
    queue.put(batch(1, 2, 3))
    async for tick in queue:
        assert tick.number == 1
        break
    assert [tick.number for tick in await queue.take()] == [2, 3]


async def test_a_reader_wakes_for_a_tick_and_ends_with_the_queue() -> None:
    queue = TickQueue(10)

    async def numbers() -> list[int]:
        return [tick.number async for tick in queue]

    reading = asyncio.create_task(numbers())
    await asyncio.sleep(0)
    queue.put(batch())  # events alone
    queue.put(batch(1))
    await asyncio.sleep(0)
    queue.put(batch(2))
    queue.close()
    assert await reading == [1, 2]
    assert await queue.take() == []
