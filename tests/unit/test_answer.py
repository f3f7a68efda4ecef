"""From the rows of an answer to bars: what is kept and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.market.answer import Answer, Question, Rejected, keep_last, sort_rows
from collector.market.bar_rows import BarRows
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import MINUTE as MIN
from collector.market.timeframe import Timeframe
from tests.support.bars import MINUTE, at, recorded, span

Row = tuple[Any, ...]
Sorted = tuple[CandleBatch, tuple[Rejected, ...]]


def row(slot: float, price: float = 10.0, volume: float = 1.0) -> Row:
    return (at(0) + slot * MINUTE, price, price + 1, price - 1, price, volume, None)


def page(rows: list[Any], *, now: int = 1000) -> Sorted:
    """The rows of an answer to a question about slots 0 to 9; slots before `now` have ended."""
    return sort_rows(rows, MIN, span(0, 10), at(now))


def slots(bars: CandleBatch) -> list[int]:
    return [(ts - at(0)) // MINUTE for ts in bars.ts.tolist()]


def test_good_rows_pass_as_they_are() -> None:
    bars, refused = page([row(slot, price=slot + 5) for slot in range(10)])
    assert slots(bars) == list(range(10))
    assert bars.o.tolist() == [slot + 5 for slot in range(10)]
    assert np.isnan(bars.t).all()
    assert not refused


def test_disorder_is_put_in_order_and_text_is_read() -> None:
    text = ("1704067200000", "10", "11", "9", "10.5", "3", "4.5")
    bars, refused = page([row(2), row(1), text])
    assert slots(bars) == [0, 1, 2]
    assert (bars.c[0], bars.t[0]) == (10.5, 4.5)
    assert not refused


def test_six_columns_are_enough() -> None:
    assert slots(page([row(0)[:6], row(1)[:6]])[0]) == [0, 1]
    assert slots(page([row(0)[:6], row(1)])[0]) == [0, 1]


def test_of_repeated_bars_the_last_one_sent_counts() -> None:
    bars, _ = page([row(1, 10), row(0), row(1, 20), row(1, 15)])
    assert slots(bars) == [0, 1]
    assert bars.o.tolist() == [10, 15]


def test_keep_last_keeps_one_bar_per_time() -> None:
    twice = CandleBatch.of([row(0, 10), row(1, 20), row(1, 30), row(2, 40)])
    assert keep_last(twice).o.tolist() == [10, 30, 40]
    once = CandleBatch.of([row(0), row(1)])
    assert keep_last(once) is once
    assert not len(keep_last(CandleBatch.empty()))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ((at(3), None, 11, 9, 10, 1, None), "not_finite"),
        ((at(3), 10, float("inf"), 9, 10, 1, None), "not_finite"),
        ((at(3), 10, 11, 9, float("nan"), 1, None), "not_finite"),
        ((at(3), 10, 11, 9, 10, 1, float("inf")), "not_finite"),
        ((at(3), 10, 9.5, 9, 9.2, 1, None), "ohlc"),
        ((at(3), 10, 11, 10.5, 11, 1, None), "ohlc"),
        ((at(3), 0, 0, 0, 0, 43, None), "price"),
        ((at(3), 10, 11, 0, 10, 1, None), "price"),
        ((at(3), -10, -9, -11, -10, 1, None), "price"),
        ((at(3), 10, 11, 9, 10, -1, None), "negative_volume"),
        ((at(3), 10, 11, 9, 10, 1, -1), "negative_volume"),
        ((at(3) + 1, 10, 11, 9, 10, 1, None), "misaligned"),
        ((at(3), "ten", 11, 9, 10, 1, None), "unreadable"),
        ((at(3), 10, 11), "unreadable"),
        ([at(3), [10], 11, 9, 10, 1, 1], "unreadable"),
        ((at(3), 10**400, 11, 9, 10, 1, None), "unreadable"),
    ],
)
def test_a_bad_row_is_refused_and_no_bar(bad: Any, reason: str) -> None:
    bars, refused = page([row(2), bad, row(4)])
    assert slots(bars) == [2, 4]
    assert [(each.reason, each.row) for each in refused] == [(reason, tuple(bad))]


def test_a_market_that_may_trade_below_zero_does() -> None:
    """Crude oil once did. The venue's quirks say so."""
    below = (at(3), -10.0, 1.0, -11.0, 0.0, 1.0, None)
    bars, refused = sort_rows([below], MIN, span(0, 10), at(1000), below_zero=True)
    assert (slots(bars), refused) == ([3], ())


@pytest.mark.parametrize("slot", [-1, 10, 11])
def test_a_bar_outside_the_question_is_a_bar_all_the_same(slot: int) -> None:
    bars, refused = page([row(5), row(slot)])
    assert slots(bars) == sorted([5, slot])
    assert not refused


@pytest.mark.parametrize("cells", [(0, 0, 0, 0, 1), ("ten", 11, 9, 10, 1), (None, 11, 9, 10, 1)])
@pytest.mark.parametrize("slot", [-1, 10])
def test_a_bad_row_outside_the_question_is_left_to_its_own_question(
    slot: int, cells: tuple[Any, ...]
) -> None:
    bars, refused = page([row(5), (at(slot), *cells, None)])
    assert (slots(bars), refused) == ([5], ())


@pytest.mark.parametrize("slot", [8, 500])
def test_a_row_from_the_future_is_refused(slot: int) -> None:
    bars, refused = page([row(0), row(slot)], now=3)
    assert slots(bars) == [0]
    assert [(each.reason, each.ts) for each in refused] == [("future", at(slot))]


def test_a_running_bar_is_neither_kept_nor_refused() -> None:
    bars, refused = page([row(0), row(1), row(2)], now=2)
    assert (slots(bars), refused) == ([0, 1], ())


@pytest.mark.parametrize("lost", [None, float("nan"), -5, 1.5, 2.0**60])
def test_a_row_without_a_time_is_refused(lost: Any) -> None:
    bars, refused = page([row(0), row(1), (lost, 10, 11, 9, 10, 1, None)])
    assert slots(bars) == [0, 1]
    assert [(each.reason, each.ts) for each in refused] == [("no_time", None)]


@pytest.mark.parametrize("junk", [None, 7, "text", {}, [], [[1, 2], [3, 4]], ("soon", *row(0)[1:])])
def test_junk_is_refused_and_hurts_no_other_row(junk: Any) -> None:
    bars, refused = page([row(0), junk])
    assert slots(bars) == [0]
    assert [(each.reason, each.ts) for each in refused] == [("unreadable", None)]


def test_a_refused_repeat_does_not_take_its_bar_along() -> None:
    bars, refused = page([row(3), (at(3), 10, 5, 9, 10, 1, None)])
    assert (slots(bars), len(refused)) == ([3], 1)


def test_a_refused_row_is_kept_as_it_came() -> None:
    bad = (at(3), None, 11, 9, 10, 1, None)
    low = (at(1), 10.0, 9.5, 9.0, 9.2, 1.0, None)
    bars, refused = page([row(4), bad, row(2), low])
    assert [(each.reason, each.row) for each in refused] == [("ohlc", low), ("not_finite", bad)]
    assert slots(bars) == [2, 4]


def test_no_rows_are_no_bars() -> None:
    bars, refused = page([])
    assert (len(bars), refused) == (0, ())


def test_weekly_bars_open_on_mondays() -> None:
    week, monday = Timeframe.parse("1w"), at(0)
    rows = [(monday + days * 86_400_000, 10, 11, 9, 10, 1, None) for days in (0, 1)]
    asked = Interval(monday, monday + week.ms)
    bars, refused = sort_rows(rows, week, asked, monday + 2 * week.ms)
    assert bars.ts.tolist() == [monday]
    assert [each.reason for each in refused] == ["misaligned"]


def test_an_answer_sorts_its_rows_by_its_question_and_the_exchanges_clock() -> None:
    rows = BarRows.of([row(-1), row(0), (at(1), 0, 0, 0, 0, 1, None), row(2), row(3)])
    answer = Answer(Question.of(MIN, at(0), 10), rows, ended_ms=at(3))
    assert answer.question.interval == span(0, 10)
    assert slots(answer.bars) == [-1, 0, 2]
    assert [(each.reason, each.ts) for each in answer.refused] == [("price", at(1))]
    assert answer.bars is answer.bars, "sorted once"


@pytest.mark.parametrize("name", ["UNITTEST_BTC-1m", "XRP_ETH-1m"])
def test_real_bars_pass_unchanged(name: str) -> None:
    real = recorded(name)
    columns = (real.ts, real.o, real.h, real.l, real.c, real.v)
    rows = list(zip(*(column.tolist() for column in columns), [None] * len(real), strict=True))
    asked = Interval(int(real.ts[0]), int(real.ts[-1]) + MINUTE)
    bars, refused = sort_rows(rows, MIN, asked, asked.to_ms)
    assert not refused
    for ours, theirs in zip(bars.values()[:5], real.values()[:5], strict=True):
        assert np.array_equal(ours, theirs)
