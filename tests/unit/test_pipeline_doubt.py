"""Good bars that break with their neighbours, and what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.market import timeframe
from collector.market.bar_rows import BarRows
from collector.market.candles import CandleBatch
from collector.market.timeframe import Timeframe
from collector.pipeline.doubt import FEWEST, doubtful, needs_neighbours
from collector.pipeline.proof import AnswerExtent
from collector.pipeline.reading import AnswerRows, Reader, insisted
from collector.pipeline.second_question import second_question
from tests.support.bars import MINUTE, at, recorded, span

MIN = Timeframe.parse("1m")
Row = tuple[Any, ...]


def row(slot: int, price: float | None = None, half: float = 1.0) -> Row:
    price = 100.0 + slot % 7 if price is None else price
    return (at(slot), price, price + half, price - half, price, 3.0 + slot % 5, None)


def batch(rows: list[Row]) -> CandleBatch:
    return CandleBatch.of(rows)


def found(rows: list[Row], before: list[Row] | None = None) -> list[int]:
    known = None if before is None else batch(before)
    bars = batch(rows)
    return ((bars.ts[doubtful(bars, known)] - at(0)) // MINUTE).tolist()


def usual(first: int, end: int) -> list[Row]:
    return [row(slot) for slot in range(first, end)]


def test_an_ordinary_page_raises_no_doubt() -> None:
    assert found(usual(0, 1000)) == []


def test_a_range_of_twenty_times_the_usual_one_is_doubted() -> None:
    assert found([*usual(0, 600), row(600, half=19.0), *usual(601, 700)]) == []
    assert found([*usual(0, 600), row(600, half=21.0), *usual(601, 700)]) == [600]


def test_a_jump_is_doubted_at_both_its_ends() -> None:
    assert found([*usual(0, 600), row(600, price=10.0), *usual(601, 700)]) == [600, 601]


def test_a_last_row_that_repeats_the_one_before_is_doubted_when_it_has_trades() -> None:
    repeated = (at(100), *row(99)[1:])
    assert found([*usual(0, 100), repeated]) == [100]
    assert found([*usual(0, 100), repeated, row(101)]) == [], "inside a page it is no news"
    quiet = [(ts, 5.0, 5.0, 5.0, 5.0, 0.0, None) for ts in (at(0), at(1))]
    assert found(quiet) == []
    assert found([repeated], before=usual(0, 100)) == [100]


def test_the_first_bars_of_a_page_are_judged_by_those_before_it() -> None:
    page = [row(600, half=30.0), *usual(601, 700)]
    assert found(page) == []
    assert needs_neighbours(batch(page))
    assert found(page, before=usual(100, 600)) == [600]
    assert not needs_neighbours(batch(usual(0, FEWEST)))


def test_a_market_with_few_trades_is_measured_by_the_bars_that_moved() -> None:
    single = [row(slot, half=0.0 if slot % 4 else 1.0, price=100.0) for slot in range(600)]
    assert found([*single, row(600, price=100.0, half=3.0), row(601)]) == []
    assert found([row(slot, price=100.0, half=0.0) for slot in range(600)] + [row(600)]) == []


@pytest.mark.parametrize("name", ["UNITTEST_BTC-1m", "XRP_ETH-1m"])
def test_real_bars_raise_no_doubts(name: str) -> None:
    assert not np.count_nonzero(doubtful(recorded(name)))


def received(rows: list[Row], first: int, end: int) -> AnswerRows:
    times = [int(each[0]) for each in rows]
    extent = AnswerExtent(span(first, end), times[0], times[-1], len(rows), full=False, begins=True)
    return AnswerRows(extent, BarRows.of(rows))


def asked_twice(first: list[Row], second: list[Row]) -> Any:
    """What is kept of two answers about the same stretch."""
    reader = Reader(MIN, at(1_000))
    one = received(first, 0, 200)
    reading = reader.read([one])
    again = second_question(
        one.extent,
        reading.prepared,
        reading.doubtful.ts.tolist(),
        timeframe=timeframe.MINUTE,
        ended_ms=at(1_000),
    )
    assert again is not None
    start = (again.from_ms - at(0)) // MINUTE
    two = AnswerRows(
        received([each for each in second if each[0] >= again.from_ms], start, 200).extent,
        BarRows.of([each for each in second if each[0] >= again.from_ms]),
    )
    return insisted(reading, reader.read([one, two]), two, timeframe.MINUTE).prepared


WRONG = row(150, price=10.0)


def test_what_the_venue_says_the_second_time_is_kept() -> None:
    good = usual(0, 200)
    wrong = [*good[:150], WRONG, *good[151:]]
    kept = asked_twice(wrong, good)
    assert kept.batch.o.tolist() == [each[1] for each in good]
    kept = asked_twice(wrong, wrong)
    assert kept.batch.o[150] == 10.0, "it insists"
    assert kept.covered == (span(0, 200),)


def test_what_it_does_not_repeat_is_refused_and_missing() -> None:
    good = usual(0, 200)
    wrong = [*good[:150], WRONG, *good[151:]]
    kept = asked_twice(wrong, [*good[:150], *good[151:]])
    assert [(each.reason, each.ts) for each in kept.rejected] == [("not_repeated", at(150))]
    assert kept.covered == (span(0, 150), span(151, 200))
