"""Waiting after failures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.backoff import Backoff

POLICY = Backoff(base_seconds=5, max_seconds=180, multiplier=2, jitter=0.15)


def test_the_pause_doubles_and_stops_growing_at_the_ceiling() -> None:
    assert [POLICY.delay(n, 0.5) for n in range(8)] == [0, 5, 10, 20, 40, 80, 160, 180]


@given(failures=st.integers(1, 10_000), spread=st.floats(0, 1, exclude_max=True))
def test_the_pause_stays_within_its_bounds(failures: int, spread: float) -> None:
    pause = POLICY.delay(failures, spread)
    assert 5 * 0.85 <= pause <= 180
