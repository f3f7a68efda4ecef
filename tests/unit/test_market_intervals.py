"""Arithmetic of intervals against sets of points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.market.interval import Interval, covers, runs, slots, subtract, union
from collector.market.timeframe import Timeframe

intervals = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 10)).map(lambda p: Interval(p[0], p[0] + p[1])),
    max_size=8,
)


def points(pieces: tuple[Interval, ...] | list[Interval]) -> set[int]:
    return {p for each in pieces for p in range(each.from_ms, each.to_ms)}


def is_tidy(pieces: tuple[Interval, ...]) -> bool:
    return all(a.to_ms < b.from_ms for a, b in itertools.pairwise(pieces))


@given(intervals)
def test_a_union_holds_the_same_points_and_is_tidy(pieces: list[Interval]) -> None:
    merged = union(pieces)
    assert points(merged) == points(pieces)
    assert is_tidy(merged)


@given(intervals, intervals)
def test_a_difference_holds_what_is_left(pieces: list[Interval], holes: list[Interval]) -> None:
    left = subtract(pieces, holes)
    assert points(left) == points(pieces) - points(holes)


@given(intervals)
def test_covers_agrees_with_membership(pieces: list[Interval]) -> None:
    ts = np.arange(-2, 60, dtype=np.int64)
    assert covers(union(pieces), ts).tolist() == [p in points(pieces) for p in ts.tolist()]


@given(st.sets(st.integers(0, 50)))
def test_runs_are_the_points_they_came_from(at: set[int]) -> None:
    ts = np.array(sorted(at), dtype=np.int64)
    assert points(runs(ts, 1)) == at
    assert is_tidy(runs(ts, 1))


def test_slots_are_the_bars_that_open_inside() -> None:
    minute = Timeframe.parse("1m")
    assert slots(Interval(100_000, 200_000), minute) == Interval(120_000, 240_000)
    assert slots(Interval(120_000, 180_000), minute) == Interval(120_000, 180_000)
    assert slots(Interval(121_000, 179_000), minute) is None


def test_an_interval_holds_time() -> None:
    with pytest.raises(ValueError, match="holds no time"):
        Interval(5, 5)
