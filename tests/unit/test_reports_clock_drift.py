"""The distance between our clock and the exchange's, measured by its answers."""

from __future__ import annotations

from collector.clock import ManualClock
from collector.reports.clock_drift import Drift, clock_drift


async def test_a_clock_too_far_off_is_found() -> None:
    clock = ManualClock()

    async def server_ms() -> int:
        clock.advance(0.1)
        return clock.wall_ms() + 600

    found = await clock_drift(server_ms, clock)
    assert found == Drift(650.0, 50.0)
    assert not found.ok
    assert not found.check().ok
    assert Drift(-500.0, 0.0).ok
    # A slow answer explains as much as half of the time it took.
    assert Drift(650.0, 200.0).ok


async def test_the_quickest_answer_is_believed() -> None:
    clock, waits = ManualClock(), iter([2.0, 0.0, 1.0])

    async def server_ms() -> int:
        clock.advance(next(waits))
        return clock.wall_ms()

    assert await clock_drift(server_ms, clock) == Drift(0.0, 0.0)
