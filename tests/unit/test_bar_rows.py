"""Rows of bars by the column: they read like the rows that were sent."""

from __future__ import annotations

import math
from typing import Any

import pytest

from collector.market.bar_rows import BarRows

T0 = 1_704_067_200_000
MINUTE = 60_000


def bar(slot: int, price: float = 10.0, turnover: float | None = None) -> tuple[Any, ...]:
    return (T0 + slot * MINUTE, price, price + 1, price - 1, price, 1.0, turnover)


def test_plain_rows_are_columns_oldest_first_and_equal_times_stay_in_order() -> None:
    rows = BarRows.of([bar(2), bar(0), bar(1, 11.0), bar(1, 12.0, 3.5)])
    assert not rows.odd
    assert rows == (bar(0), bar(1, 11.0), bar(1, 12.0, 3.5), bar(2))
    assert rows.batch.o.tolist() == [10.0, 11.0, 12.0, 10.0]
    assert math.isnan(rows.batch.t[0])


@pytest.mark.parametrize(
    "odd",
    [
        (T0 + MINUTE, None, 11, 9, 10, 1, None),
        (T0 + MINUTE, 10, math.inf, 9, 10, 1, None),
        (T0 + MINUTE, 10, 11, 9, 10, 1, math.inf),
        (T0 + MINUTE, "ten", 11, 9, 10, 1, None),
        (T0 + MINUTE, 10),
    ],
)
def test_a_row_that_is_not_plain_is_kept_as_it_was_sent_in_its_place(odd: Any) -> None:
    rows = BarRows.of([bar(0), odd, bar(2)])
    assert list(rows) == [bar(0), odd, bar(2)]
    assert rows.odd == (odd,)
    assert rows.times.tolist() == [T0, T0 + MINUTE, T0 + 2 * MINUTE]


@pytest.mark.parametrize("time", [None, math.nan, "soon", -1, T0 + 0.5, 1e300])
def test_a_row_without_a_time_is_last(time: Any) -> None:
    lost = (time, *bar(0)[1:])
    rows = BarRows.of([lost, bar(1), bar(0)])
    assert list(rows)[:2] == [bar(0), bar(1)]
    assert rows.odd == (lost,)
    assert rows.times.tolist() == [T0, T0 + MINUTE]


def test_no_rows() -> None:
    rows = BarRows.of([])
    assert rows == ()
    assert not rows
    assert not len(rows.times)
