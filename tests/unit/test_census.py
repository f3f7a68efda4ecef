"""What is told of many lags."""

from __future__ import annotations

from itertools import permutations

from collector.operations.census import Lag, furthest


def test_of_equal_lags_the_longest_bars_are_told_whatever_their_order() -> None:
    lags = [Lag(2, "1m"), Lag(2, "1d"), Lag(2, "1h"), Lag(1, "1w")]
    assert {furthest(each) for each in permutations(lags)} == {Lag(2, "1d")}
