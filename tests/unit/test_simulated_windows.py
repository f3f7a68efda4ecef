"""The judge of rate limits, against counting by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.simulated.windows import max_in_window, sliding_violations

arrivals = st.lists(st.integers(0, 60).map(float), max_size=40)


def most_by_hand(times: list[float], period: float) -> int:
    return max(
        (sum(start <= time < start + period for time in times) for start in times), default=0
    )


@given(times=arrivals, limit=st.integers(1, 12), period=st.integers(1, 30))
def test_violations_are_counted_as_by_hand(times: list[float], limit: int, period: int) -> None:
    ordered = sorted(times)
    by_hand = sum(
        sum(time - period < other for other in ordered[:place]) >= limit
        for place, time in enumerate(ordered)
    )
    assert sliding_violations(times, limit, period) == by_hand


@given(times=arrivals, limit=st.integers(1, 12), period=st.integers(1, 30))
def test_there_are_violations_exactly_when_a_window_held_too_many(
    times: list[float], limit: int, period: int
) -> None:
    most = max_in_window(times, period)
    assert most == most_by_hand(times, period)
    assert (sliding_violations(times, limit, period) > 0) == (most > limit)


@pytest.mark.parametrize(
    ("times", "limit", "violations", "most"),
    [
        ([], 1, 0, 0),
        ([0.0, 100.0, 200.0], 1, 0, 1),
        ([0.0, 99.9], 1, 1, 2),
        # Two full fixed windows side by side are one sliding window that is too full.
        ([90.0, 91.0, 92.0, 100.0, 101.0, 102.0], 3, 3, 6),
        ([5.0, 3.0, 4.0], 2, 1, 3),
        ([1.0, 2.0], 0, 2, 2),
    ],
)
def test_known_cases(times: list[float], limit: int, violations: int, most: int) -> None:
    assert sliding_violations(times, limit, 100) == violations
    assert max_in_window(times, 100) == most
