"""A clock's drift, from dates that are exact to the second."""

from __future__ import annotations

import pytest

from collector.reports.clock_drift import Drift
from collector.reports.drift_bounds import DriftBounds


def after_answers(bounds: DriftBounds, ahead_ms: float, count: int, begun: float = 0.0) -> Drift:
    """Answers of a clock that is so far ahead of ours; each takes 40 ms."""
    for number in range(count):
        at = begun + number * 7.037
        theirs = at * 1000 - 20 + ahead_ms
        least = theirs - theirs % 1000 - at * 1000
        drift = bounds.narrow(least, least + 999 + 40, at)
    return drift


def test_one_answer_leaves_doubt_and_many_leave_little() -> None:
    assert after_answers(DriftBounds(), 0, 1).doubt_ms > 500
    many = after_answers(DriftBounds(), 700, 60)
    assert many.drift_ms == pytest.approx(700, abs=60)
    assert many.doubt_ms < 60
    assert many.is_off(was_off=False)


@pytest.mark.parametrize("ahead_ms", [-30_000, -1_200, 1_200, 30_000])
def test_a_large_drift_is_seen_within_a_few_answers(ahead_ms: float) -> None:
    assert after_answers(DriftBounds(), ahead_ms, 8).is_off(was_off=False)


@pytest.mark.parametrize("ahead_ms", [-300, 0, 300])
def test_clocks_that_agree_are_never_reported(ahead_ms: float) -> None:
    for count in range(1, 80):
        assert not after_answers(DriftBounds(), ahead_ms, count).is_off(was_off=False)


def test_a_clock_that_is_set_right_is_believed_at_once() -> None:
    bounds = DriftBounds()
    assert after_answers(bounds, 30_000, 30).is_off(was_off=True)
    assert not after_answers(bounds, 0, 1, begun=1_000).is_off(was_off=True)


def test_a_drift_near_the_limit_is_reported_once() -> None:
    near = Drift(drift_ms=495, doubt_ms=5)
    assert not near.is_off(was_off=False)
    assert near.is_off(was_off=True)
