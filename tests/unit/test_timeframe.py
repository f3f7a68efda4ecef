"""Bar lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.market.timeframe import Timeframe


@pytest.mark.parametrize(("name", "ms"), [("1m", 60_000), ("4h", 14_400_000), ("1w", 604_800_000)])
def test_lengths(name: str, ms: int) -> None:
    assert Timeframe.parse(name).ms == ms


def test_the_fxcm_spelling_means_the_same() -> None:
    assert Timeframe.parse("m1") == Timeframe.parse("1m")
    assert Timeframe.parse("H4") == Timeframe.parse("4h")


@pytest.mark.parametrize("name", ["", "m", "0m", "1y", "1M", "-1m", "1m ", "1.5h", "99999m"])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a timeframe"):
        Timeframe.parse(name)


@given(ts=st.integers(0, 4_000_000_000_000), name=st.sampled_from(["1m", "7m", "1h", "1d", "1w"]))
def test_every_moment_lies_in_exactly_one_bar(ts: int, name: str) -> None:
    frame = Timeframe.parse(name)
    assert frame.floor(ts) <= ts < frame.next_open(ts)
    assert frame.aligned(frame.floor(ts))


def test_weeks_begin_on_monday() -> None:
    monday = 1_704_067_200_000  # 2024-01-01
    assert Timeframe.parse("1w").floor(monday + 3 * 86_400_000) == monday
