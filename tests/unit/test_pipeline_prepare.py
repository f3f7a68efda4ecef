"""From a page to bars: what is kept, what is refused, what is covered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.prepare import Prepared, prepare
from tests.support.bars import MINUTE, at, recorded, span

MIN = Timeframe.parse("1m")
Row = tuple[Any, ...]


def row(slot: float, price: float = 10.0, volume: float = 1.0) -> Row:
    return (moment(slot), price, price + 1, price - 1, price, volume, None)


def moment(slot: float) -> float:
    return at(0) + slot * MINUTE


def page(rows: list[Any], *, asked: Interval | None = None, now: float = 1000) -> Prepared:
    return prepare(rows, timeframe=MIN, asked=asked or span(0, 10), server_ms=int(moment(now)))


def slots(prepared: Prepared) -> list[int]:
    return [(ts - at(0)) // MINUTE for ts in prepared.batch.ts.tolist()]


def test_a_good_page_passes_as_it_is() -> None:
    done = page([row(slot, price=slot + 5) for slot in range(10)])
    assert slots(done) == list(range(10))
    assert done.batch.o.tolist() == [slot + 5 for slot in range(10)]
    assert np.isnan(done.batch.t).all()
    assert not done.rejected
    assert not len(done.running)
    assert done.covered == (span(0, 10),)


def test_disorder_is_put_in_order_and_text_is_read() -> None:
    text = ("1704067200000", "10", "11", "9", "10.5", "3", "4.5")
    done = page([row(2), row(1), text])
    assert slots(done) == [0, 1, 2]
    assert done.batch.c[0] == 10.5
    assert done.batch.t[0] == 4.5


def test_six_columns_are_enough() -> None:
    assert slots(page([row(0)[:6], row(1)[:6]])) == [0, 1]
    assert slots(page([row(0)[:6], row(1)])) == [0, 1]


def test_of_repeated_bars_the_last_one_sent_wins() -> None:
    done = page([row(1, 10), row(0), row(1, 20), row(1, 15)])
    assert slots(done) == [0, 1]
    assert done.batch.o.tolist() == [10, 15]


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
def test_a_bad_bar_is_refused_and_its_slot_stays_open(bad: Any, reason: str) -> None:
    done = page([row(2), bad, row(4)])
    assert slots(done) == [2, 4]
    assert [each.reason for each in done.rejected] == [reason]
    assert done.rejected[0].row == tuple(bad)
    assert done.covered == (span(0, 3), span(4, 10))


def test_a_market_that_may_trade_below_zero_does() -> None:
    """Crude oil once did. The venue's quirks say so."""
    below = (at(3), -10.0, 1.0, -11.0, 0.0, 1.0, None)
    done = prepare(
        [below], timeframe=MIN, asked=span(0, 10), server_ms=int(moment(1000)), below_zero=True
    )
    assert slots(done) == [3]


@pytest.mark.parametrize("slot", [-1, 10, 11])
def test_a_bar_nobody_asked_for_is_refused(slot: int) -> None:
    done = page([row(5), row(slot)])
    assert [each.reason for each in done.rejected] == ["outside_window"]
    assert done.covered == (span(0, 10),)


def test_a_bar_from_the_future_is_refused() -> None:
    done = page([row(0), row(8)], now=3)
    assert [each.reason for each in done.rejected] == ["future"]
    assert done.covered == (span(0, 3),)


@pytest.mark.parametrize("lost", [None, float("nan"), -5, 1.5, 2.0**60, "soon"])
def test_a_row_without_a_time_leaves_only_the_bars_settled(lost: Any) -> None:
    done = page([row(0), row(1), row(4), (lost, 10, 11, 9, 10, 1, None)])
    assert slots(done) == [0, 1, 4]
    assert [each.ts for each in done.rejected] == [None]
    assert done.covered == (span(0, 2), span(4, 5))


@pytest.mark.parametrize("junk", [None, 7, "text", {}, [], [[1, 2], [3, 4]]])
def test_junk_is_refused_and_hurts_nobody(junk: Any) -> None:
    done = page([row(0), junk])
    assert slots(done) == [0]
    assert len(done.rejected) == 1


def test_a_refused_repeat_does_not_take_its_bar_along() -> None:
    done = page([row(3), (at(3), 10, 5, 9, 10, 1, None)])
    assert slots(done) == [3]
    assert len(done.rejected) == 1
    assert done.covered == (span(0, 10),)


def test_a_running_bar_is_neither_stored_nor_refused() -> None:
    done = page([row(0), row(1), row(2)], now=2.5)
    assert slots(done) == [0, 1]
    assert done.running.ts.tolist() == [at(2)]
    assert not done.rejected
    assert done.covered == (span(0, 2),)


def test_a_bar_closes_at_its_end_plus_the_grace_on_the_venues_clock() -> None:
    def closed(server_ms: int) -> list[int]:
        done = prepare([row(0)], timeframe=MIN, asked=span(0, 1), server_ms=server_ms, grace_ms=500)
        assert done.covered == ((span(0, 1),) if len(done.batch) else ())
        return slots(done)

    assert closed(at(1) + 499) == []
    assert closed(at(1) + 500) == [0]


def test_the_last_row_is_kept_when_it_is_closed() -> None:
    assert slots(page([row(0), row(9)], now=10)) == [0, 9]


def test_an_empty_page_settles_what_was_asked() -> None:
    done = page([])
    assert not len(done.batch)
    assert done.covered == (span(0, 10),)


def test_an_empty_page_about_the_present_settles_nothing() -> None:
    assert page([], now=0.5).covered == ()


def test_weekly_bars_open_on_mondays() -> None:
    week = Timeframe.parse("1w")
    monday = at(0)
    done = prepare(
        [(monday, 10, 11, 9, 10, 1, None), (monday + 86_400_000, 10, 11, 9, 10, 1, None)],
        timeframe=week,
        asked=Interval(monday, monday + week.ms),
        server_ms=monday + 2 * week.ms,
    )
    assert done.batch.ts.tolist() == [monday]
    assert [each.reason for each in done.rejected] == ["misaligned"]


@pytest.mark.parametrize("name", ["UNITTEST_BTC-1m", "XRP_ETH-1m"])
def test_real_bars_pass_unchanged(name: str) -> None:
    real = recorded(name)
    columns = (real.ts, real.o, real.h, real.l, real.c, real.v)
    rows = list(zip(*(column.tolist() for column in columns), [None] * len(real), strict=True))
    first, end = int(real.ts[0]), int(real.ts[-1]) + MINUTE
    done = prepare(rows, timeframe=MIN, asked=Interval(first, end), server_ms=end)
    assert not done.rejected
    assert not len(done.running)
    assert done.covered == (Interval(first, end),)
    for ours, theirs in zip(done.batch.values()[:5], real.values()[:5], strict=True):
        assert np.array_equal(ours, theirs)


def test_a_refused_row_is_kept_as_it_came() -> None:
    bad = (at(3), None, 11, 9, 10, 1, None)
    low = (at(1), 10.0, 9.5, 9.0, 9.2, 1.0, None)
    done = page([row(4), bad, row(2), low])
    assert [(each.reason, each.row) for each in done.rejected] == [
        ("ohlc", low),
        ("not_finite", bad),
    ]
    assert slots(done) == [2, 4]
