"""A usual page is sorted and weighed by a short way, and the result is that of the long one."""

from __future__ import annotations

from dataclasses import fields
from unittest.mock import patch

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from collector.market.answer import Answer, Question, Rejected, sort_rows
from collector.market.bar_rows import BarRows
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import MINUTE, Timeframe
from collector.pipeline.evidence import Activity, Known, _Weighing, weigh_usual

START = 1_704_067_200_000
OFTEN = st.sampled_from([True, True, True, False])
SLOTS = st.lists(st.integers(0, 30), max_size=20)
PRICES = st.sampled_from([100.0, 101.5, 99.0, 0.0, -1.0, float("nan"), float("inf")])
FRAMES = st.sampled_from(
    [MINUTE, Timeframe.parse("5m"), Timeframe.parse("1w"), Timeframe.parse("1M")]
)
Row = tuple[float, ...]


def at(slot: int) -> int:
    return START + 60_000 * slot


@st.composite
def odd_rows(draw: st.DrawFn) -> list[Row]:
    """Mostly a run of good bars, with something odd here and there."""
    first, count = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    slots = list(range(first, first + count)) if draw(OFTEN) else draw(SLOTS)
    off_by = 0 if draw(OFTEN) else 1
    page: list[Row] = [(at(slot) + off_by, 100.0, 102.0, 98.0, 101.0, 5.0) for slot in slots]
    for place in draw(st.lists(st.integers(0, 20), max_size=2)):
        if place < len(page):
            cells = list(page[place])
            cells[draw(st.integers(1, 5))] = draw(PRICES)
            page[place] = tuple(cells)
    return page


def same(one: CandleBatch, other: CandleBatch) -> bool:
    columns = (field.name for field in fields(CandleBatch) if field.name != "extra")
    return all(
        np.array_equal(getattr(one, n), getattr(other, n), equal_nan=n != "gap") for n in columns
    )


@given(
    odd_rows(),
    st.one_of(st.just((0, 70)), st.tuples(st.integers(0, 35), st.integers(1, 35))),
    st.one_of(st.just(100), st.integers(-1, 35)),
)
def test_rows_are_sorted_alike_by_the_short_way_and_the_long_one(
    rows: list[Row], window: tuple[int, int], now: int
) -> None:
    first, count = window
    asked = Interval(at(first), at(first + count))

    def sorted_rows() -> tuple[CandleBatch, tuple[Rejected, ...]]:
        return sort_rows(rows, MINUTE, asked, at(now))

    bars, refused = sorted_rows()
    with patch.object(Timeframe, "are_in_line", return_value=False):
        bars_too, refused_too = sorted_rows()
    assert same(bars, bars_too)
    # repr: a NaN in a refused row equals nothing.
    assert repr(refused) == repr(refused_too)


def row(slot: int, price: float) -> Row:
    return (at(slot), price, price + 1, price - 1, price, 1.0 + slot % 3, float("nan"))


@st.composite
def pages(draw: st.DrawFn) -> tuple[Known, Answer]:
    """Mostly a bar in every slot, and known bars around and inside that mostly say the same."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    walk = 100 + np.cumsum(rng.integers(-2, 3, 300)) / 4
    false = dict.fromkeys(draw(st.lists(st.integers(0, 299), max_size=2)), 1000.0)
    lie = {} if draw(OFTEN) else false

    def table(slots: list[int], values: dict[int, float]) -> list[Row]:
        return [row(slot, values.get(slot, float(walk[slot]))) for slot in slots]

    first, end = draw(st.integers(20, 120)), draw(st.integers(121, 280))
    extra = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    rows = table(list(range(first - extra[0], end + extra[1])), lie)
    if not draw(OFTEN):
        del rows[draw(st.integers(0, len(rows) - 1))]
    about = None
    if not draw(OFTEN):
        about = Interval(at(first + draw(st.integers(0, 1))), at(end - draw(st.integers(0, 1))))
    ended = draw(st.sampled_from([20_000, 20_000, end + 8, end, end - 5]))
    answer = Answer(
        Question(MINUTE, at(first), at(end), 500, about),
        BarRows.of(rows),
        full=draw(st.booleans()),
        ended_ms=at(ended),
        at=at(ended),
    )
    stored = [*range(20), *range(draw(st.integers(0, 200)), draw(st.integers(0, 200)))]
    stored += range(draw(st.integers(279, 299)), 299)
    other = {} if draw(OFTEN) else {draw(st.integers(0, 299)): 100.0}
    empty = () if draw(OFTEN) else (Interval(at(200), at(202)),)
    bars = CandleBatch.of(table(sorted({each for each in stored if not 200 <= each < 202}), other))
    activity = draw(st.sampled_from([Activity(), Activity().add(5000, 4000, [1] * 20, 500, 0.5)]))
    return Known(MINUTE, 500, bars, empty, activity=activity), answer


@given(pages())
def test_a_page_is_weighed_alike_by_the_short_way_and_the_long_one(
    page: tuple[Known, Answer],
) -> None:
    known, answer = page
    short, long = weigh_usual(known, answer), _Weighing(known, [answer]).verdict()
    event(f"short way: {short is not None}")
    if short is None:
        return
    assert same(short.bars, long.bars)
    for name in ("empty", "ask", "silences", "withdrawn", "removed", "recheck", "refused"):
        assert getattr(short, name) == getattr(long, name), name
    for name in ("pages", "slots", "bars", "silences"):
        assert getattr(short.activity, name) == getattr(long.activity, name), name


@given(st.integers(1, 100), st.integers(0, 60), st.booleans())
def test_an_honest_page_takes_the_short_way(count: int, stored: int, ends_now: bool) -> None:
    """Also behind and over known bars: most pages of a history do."""
    prices = [100.0 + slot % 7 for slot in range(-60, 100)]
    history = [row(slot - 60, price) for slot, price in enumerate(prices)]
    known = Known(MINUTE, 500, CandleBatch.of(history[: 1 + stored]))
    question = Question(MINUTE, at(-60), at(-60 + count), 500)
    ended = at(-60 + count) if ends_now else at(10_000)
    answer = Answer(question, BarRows.of(history[:count]), ended_ms=ended)
    verdict = weigh_usual(known, answer)
    assert verdict is not None
    assert len(verdict.bars) == max(0, count - stored - 1)


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from([0, 0, 1]), FRAMES)
def test_times_in_line_are_ascending_on_the_grid_and_without_a_gap(
    slots: list[int], off_by: int, frame: Timeframe
) -> None:
    opens = frame.opens(frame.floor(START), frame.shift(START, 60))
    ts = opens[slots] + off_by
    by_step = len(ts) > 0 and frame.is_uniform and (np.diff(slots) == 1).all()
    assert frame.are_in_line(ts) == (by_step and not off_by)
