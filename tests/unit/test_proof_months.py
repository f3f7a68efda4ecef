"""What an answer covers where bars differ in length: months."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.proof import AnswerExtent, proven

MONTH = Timeframe.parse("1M")


def first_of(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1000


YEAR = Interval(first_of(2023, 1), first_of(2024, 1))


@pytest.mark.parametrize(("full", "end"), [(True, first_of(2023, 11)), (False, first_of(2024, 1))])
def test_a_settled_stretch_ends_where_a_month_does(full: bool, end: int) -> None:
    extent = AnswerExtent(YEAR, first_of(2023, 1), first_of(2023, 10), 10, full=full, begins=True)
    assert proven([extent], MONTH, first_of(2025, 1)) == (Interval(first_of(2023, 1), end),)


def test_a_silence_is_counted_in_months_and_not_in_their_shortest_length() -> None:
    asked = Interval(first_of(2000, 1), first_of(2022, 1))
    extent = AnswerExtent(
        asked, first_of(2000, 1), first_of(2020, 12), 252, full=False, begins=True
    )
    # Twelve months are more than ten expected rows; eleven months and 20 days would not be.
    found = proven([extent], MONTH, first_of(2025, 1))
    assert found == (Interval(first_of(2000, 1), first_of(2021, 1)),)
