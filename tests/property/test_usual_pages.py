"""A usual page is prepared by a short way, and the result is that of the long one."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import MINUTE, Timeframe
from collector.pipeline import doubt, prepare

if TYPE_CHECKING:
    from collector.pipeline.prepare import Prepared

START = 1_704_067_200_000
OFTEN = st.sampled_from([True, True, True, False])
SLOTS = st.lists(st.integers(0, 30), max_size=20)
PRICES = st.sampled_from([100.0, 101.5, 99.0, 0.0, -1.0, float("nan"), float("inf")])
FRAMES = st.sampled_from(
    [MINUTE, Timeframe.parse("5m"), Timeframe.parse("1w"), Timeframe.parse("1M")]
)


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[float, ...]]:
    """Mostly a run of good bars, with something odd here and there."""
    first, count = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    slots = list(range(first, first + count)) if draw(OFTEN) else draw(SLOTS)
    off_by = 0 if draw(OFTEN) else 1
    page = [(START + 60_000 * at + off_by, 100.0, 102.0, 98.0, 101.0, 5.0) for at in slots]
    for at in draw(st.lists(st.integers(0, 20), max_size=2)):
        if at < len(page):
            cells = list(page[at])
            cells[draw(st.integers(1, 5))] = draw(PRICES)
            page[at] = tuple(cells)
    return page


def same(one: CandleBatch, other: CandleBatch) -> bool:
    columns = (field.name for field in fields(CandleBatch) if field.name != "extra")
    return all(
        np.array_equal(getattr(one, n), getattr(other, n), equal_nan=n != "gap") for n in columns
    )


@given(
    rows(),
    st.one_of(st.just((0, 70)), st.tuples(st.integers(0, 35), st.integers(1, 35))),
    st.one_of(st.just(60_000 * 100), st.integers(-60_000, 60_000 * 35)),
)
def test_the_short_way_of_a_page_leads_where_the_long_one_does(
    page: list[tuple[float, ...]], window: tuple[int, int], now: int
) -> None:
    from_slot, slots = window
    asked = Interval(START + 60_000 * from_slot, START + 60_000 * (from_slot + slots))

    def prepared() -> Prepared:
        return prepare.prepare(page, timeframe=MINUTE, asked=asked, server_ms=START + now)

    short = prepared()
    with patch.object(prepare, "_is_usual", return_value=False):
        long = prepared()
    assert same(short.batch, long.batch)
    assert same(short.running, long.running)
    # repr: a NaN in a rejected row equals nothing.
    assert repr(short.rejected) == repr(long.rejected)
    assert short.covered == long.covered


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from([0, 0, 1]), FRAMES)
def test_times_in_line_are_ascending_on_the_grid_and_without_a_gap(
    slots: list[int], off_by: int, frame: Timeframe
) -> None:
    opens = frame.opens(frame.floor(START), frame.shift(START, 60))
    ts = opens[slots] + off_by
    by_step = len(ts) > 0 and frame.is_uniform and (np.diff(slots) == 1).all()
    assert frame.are_in_line(ts) == (by_step and not off_by)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 1200),
    st.lists(
        st.tuples(st.integers(0, 1199), st.sampled_from([0.0, 5.0, 30.0, 1000.0])), max_size=6
    ),
)
def test_no_bar_stands_out_where_one_look_says_so(
    seed: int, count: int, outliers: list[tuple[int, float]]
) -> None:
    rng = np.random.default_rng(seed)
    ranges = rng.exponential(1.0, count) * rng.integers(0, 2, count)
    for at, factor in outliers:
        ranges[at:] = ranges[at:] * factor if factor < 10 else ranges[at:]
        ranges[at : at + 1] = factor
    base = np.full(count, 1000.0)
    ts = START + 60_000 * np.arange(count)
    table = np.column_stack([ts, base, base + ranges, base, base, base, base])
    batch = CandleBatch.of_columns(table.reshape(-1, 7))
    short = doubt.doubtful(batch)
    with patch.object(doubt, "_any_may_stand_out", return_value=True):
        assert (doubt.doubtful(batch) == short).all()
