"""The uniform grid, and the difference between no trade and missing."""

from __future__ import annotations

import numpy as np

from collector.market.candles import MISSING, NO_TRADE, CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.calendar import calendar, gaps
from tests.support.bars import MINUTE, at, bars, recorded, span

MIN = Timeframe.parse("1m")


def test_an_empty_slot_carries_the_last_close() -> None:
    whole = calendar(bars({0: 10.0, 3: 20.0}), MIN, span(0, 5), [span(0, 2)])
    assert ((whole.ts - at(0)) // MINUTE).tolist() == [0, 1, 2, 3, 4]
    assert whole.gap.tolist() == [0, NO_TRADE, MISSING, 0, MISSING]
    assert whole.o.tolist() == [10, 11, 11, 20, 21]
    assert whole.h.tolist() == [12, 11, 11, 22, 21]
    assert whole.l.tolist() == [9, 11, 11, 19, 21]
    assert whole.c.tolist() == [11, 11, 11, 21, 21]
    assert whole.v.tolist() == [100, 0, 0, 200, 0]
    assert whole.t.tolist() == [1000, 0, 0, 2000, 0]


def test_an_unknown_turnover_stays_unknown() -> None:
    silent = CandleBatch.of([(at(0), 1, 1, 1, 1, 5)])
    assert np.isnan(calendar(silent, MIN, span(0, 2), []).t).all()


def test_the_grid_starts_at_the_first_bar() -> None:
    whole = calendar(bars({2: 10.0}), MIN, span(0, 4), [span(0, 4)])
    assert whole.ts.tolist() == [at(2), at(3)]
    assert not len(calendar(CandleBatch.empty(), MIN, span(0, 4), [span(0, 4)]))


def test_the_bar_before_lends_its_close() -> None:
    before = bars({-7: 30.0})
    whole = calendar(bars({2: 10.0}), MIN, span(0, 3), [], before)
    assert whole.o.tolist() == [31, 31, 10]
    assert calendar(CandleBatch.empty(), MIN, span(0, 2), [], before).c.tolist() == [31, 31]


def test_a_full_grid_is_left_alone() -> None:
    full = bars({0: 1.0, 1: 2.0})
    assert calendar(full, MIN, span(0, 2), []) is full


def test_gaps_are_settled_or_owed() -> None:
    ts = bars({1: 1.0, 2: 1.0, 6: 1.0}).ts
    found = gaps(ts, MIN, span(0, 9), [span(3, 5), span(8, 9)])
    assert found.no_trade == (span(3, 5), span(8, 9))
    assert found.missing == (span(0, 1), span(5, 6), span(7, 8))


def test_real_gaps_are_found_and_real_bars_stand() -> None:
    real = recorded("UNITTEST_BTC-1m")
    end = int(real.ts[-1]) + MINUTE
    whole = calendar(real, MIN, Interval(int(real.ts[0]), end), [])
    assert (np.diff(whole.ts) == MINUTE).all()
    kept = whole.take(whole.gap == 0)
    assert len(kept) == len(real) < len(whole)
    for ours, theirs in zip(kept.values()[:5], real.values()[:5], strict=True):
        assert np.array_equal(ours, theirs)
