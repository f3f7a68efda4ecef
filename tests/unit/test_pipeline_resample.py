"""Longer bars from shorter ones."""

from __future__ import annotations

import numpy as np
import pytest

from collector.market.candles import MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.calendar import calendar
from collector.pipeline.ladder import Graded, Ladder
from collector.pipeline.resample import resample
from tests.support.bars import MINUTE, at, bars, recorded, span

M1, M5, M15, H1 = (Timeframe.parse(name) for name in ("1m", "5m", "15m", "1h"))


def test_five_minutes_make_a_bar() -> None:
    five = resample(bars({0: 10.0, 1: 30.0, 2: 5.0, 3: 20.0, 4: 15.0}), M1, M5)
    assert five.ts.tolist() == [at(0)]
    assert (five.o[0], five.h[0], five.l[0], five.c[0]) == (10, 32, 4, 16)
    assert (five.v[0], five.t[0], five.gap[0]) == (800, 8000, 0)


def test_windows_without_all_their_minutes_are_left_out_at_the_edges() -> None:
    ten = bars(dict.fromkeys(range(3, 14), 10.0))
    assert resample(ten, M1, M5).ts.tolist() == [at(5)]
    assert not len(resample(ten.take(slice(0, 4)), M1, M5))
    assert not len(resample(CandleBatch.empty(), M1, M5))


def test_a_gap_minute_marks_its_window_and_lends_no_price() -> None:
    minutes = calendar(bars({0: 50.0, 6: 10.0, 7: 20.0}), M1, span(0, 10), [span(0, 10)])
    five = resample(minutes, M1, M5)
    assert five.gap.tolist() == [PARTIAL, PARTIAL]
    assert five.o.tolist() == [50, 10]
    assert five.h.tolist() == [52, 22]
    assert five.l.tolist() == [49, 9]
    assert five.c.tolist() == [51, 21]
    assert five.v.tolist() == [500, 300]


def test_a_window_of_fillers_is_a_filler() -> None:
    minutes = calendar(bars({0: 50.0, 19: 10.0}), M1, span(0, 20), [span(5, 10)])
    five = resample(minutes, M1, M5)
    assert five.gap.tolist() == [PARTIAL, NO_TRADE, MISSING, PARTIAL]
    assert [five.o[1], five.h[1], five.l[1], five.c[1], five.v[1], five.t[1]] == [51] * 4 + [0, 0]


def test_a_missing_minute_outweighs_one_without_trade() -> None:
    minutes = calendar(bars({0: 1.0, 4: 1.0}), M1, span(0, 5), [span(1, 2)])
    assert resample(minutes, M1, M5).gap.tolist() == [PARTIAL]


def test_each_timeframe_comes_from_the_one_below() -> None:
    minutes = bars({slot: 10.0 + slot % 7 for slot in range(180)})
    ver = np.arange(180, dtype=np.int32)
    made = Ladder(M1, [H1, M5, M15]).climb(Graded(minutes, ver))
    assert list(made) == [M5, M15, H1]
    for target, longer in made.items():
        direct = resample(minutes, M1, target)
        for ours, theirs in zip(longer.batch.values(), direct.values(), strict=True):
            assert np.array_equal(ours, theirs)
        size = target.ms // M1.ms
        assert longer.ver.tolist() == list(range(size - 1, 180, size))


def test_a_timeframe_must_divide_and_the_grid_must_be_uniform() -> None:
    with pytest.raises(ValueError, match="cannot be made"):
        resample(bars({0: 1.0}), M5, Timeframe.parse("7m"))
    with pytest.raises(ValueError, match="uniform grid"):
        resample(bars({0: 1.0, 2: 1.0}), M1, M5)


def test_weeks_are_made_of_days_from_monday() -> None:
    day, week = Timeframe.parse("1d"), Timeframe.parse("1w")
    sunday = at(0) - day.ms
    days = CandleBatch.of([(sunday + n * day.ms, 1 + n, 1 + n, 1 + n, 1 + n, 1) for n in range(9)])
    made = resample(days, day, week)
    assert made.ts.tolist() == [at(0)]
    assert (made.o[0], made.c[0], made.v[0]) == (2, 8, 7)


def test_real_minutes_make_the_five_minute_bars_that_trades_make() -> None:
    """Whoever made XRP_ETH-5m made it from trades, which know nothing of gap minutes."""
    minutes, theirs = recorded("XRP_ETH-1m"), recorded("XRP_ETH-5m")
    whole = Interval(int(minutes.ts[0]), int(minutes.ts[-1]) + MINUTE)
    five = resample(calendar(minutes, M1, whole, []), M1, M5)
    ours = five.take(~five.filler)
    assert ours.ts.tolist() == theirs.ts.tolist()
    for column, other in zip(ours.values()[:4], theirs.values()[:4], strict=True):
        assert np.array_equal(column, other)
    assert np.allclose(ours.v, theirs.v, rtol=1e-12)
