"""What a series has and lacks, and the rule on gaps."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import pytest
from prometheus_client import REGISTRY

from collector.market.interval import Interval
from collector.market.series import Series
from collector.pipeline.evidence import Silence
from collector.reports import windows as windows_module
from collector.reports.coverage import coverage
from collector.reports.expected import LATE_MS, Expected
from collector.reports.gap_rule import gaps_error, within_limit
from collector.reports.missing_runs import MissingRuns
from collector.store.store import Store
from tests.support.bars import BTC, MINUTE, at, bars, flat, span

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.candles import CandleBatch

FIVE = Series.of("binance", "BTC/USDT", "5m")
AS_STORED = Expected(None, None)
"""From the start of what was asked for to its end."""
DAY_MS = 86_400_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def keep(store: Store, batch: CandleBatch, first: int, end: int) -> None:
    store.append_page(BTC, batch, span(first, end), fence=1, known_at=1_000)


def holed(store: Store) -> None:
    """100 minutes: one without a trade (10), five that nobody has an answer for (20-24)."""
    keep(store, bars({n: 100.0 for n in range(20) if n != 10}), 0, 20)
    keep(store, flat(25, 75), 25, 100)


@pytest.mark.parametrize("sealed", [False, True])
def test_no_trade_is_not_missing(store: Store, sealed: bool) -> None:
    holed(store)
    if sealed:
        store.compact(BTC)
    found = coverage(store, BTC, AS_STORED)
    assert (found.first_ts, found.last_ts) == (at(0), at(99))
    assert (found.expected, found.present, found.no_trade, found.missing) == (100, 94, 1, 5)
    assert found.gaps_pct == 0.05
    assert found.longest_gap_bars == 5
    assert found.worst == (span(20, 25),)


def test_bars_that_closed_a_moment_ago_are_late_and_not_missing(store: Store) -> None:
    keep(store, flat(0, 10), 0, 10)
    late = coverage(store, BTC, Expected.by_now(at(15)))
    assert (late.expected, late.missing, late.lag_bars) == (10, 0, 0)
    behind = coverage(store, BTC, Expected.by_now(at(18) + 30_000))
    assert (behind.expected, behind.missing, behind.tail_missing, behind.lag_bars) == (13, 3, 3, 3)
    assert behind.worst == (span(10, 13),)


@pytest.mark.parametrize("tf", ["1m", "5m"])
def test_a_series_that_stopped_is_not_whole_months_later(store: Store, tf: str) -> None:
    keep(store, flat(0, 1_000), 0, 1_000)
    series = Series.of("binance", "BTC/USDT", tf)
    november = Expected.by_now(at(0) + 310 * DAY_MS)
    found = coverage(store, series, november)
    bars_a_day = DAY_MS // series.timeframe.ms
    stored = 1_000 * MINUTE // series.timeframe.ms
    assert found.expected == 310 * bars_a_day - LATE_MS // series.timeframe.ms
    assert found.tail_missing == found.missing == found.lag_bars == found.expected - stored
    assert found.calendar == Interval(at(0), november.to_ms or 0)
    assert not within_limit(found)
    error = gaps_error([found], 0.0001)
    assert error is not None
    assert f"{found.missing:,} at its tail" in str(error)


@pytest.mark.parametrize("sealed", [False, True])
def test_what_was_asked_for_before_the_first_row_is_missing(store: Store, sealed: bool) -> None:
    keep(store, flat(100, 100), 100, 200)
    if sealed:
        store.compact(BTC)
    for series, frame in ((BTC, 1), (FIVE, 5)):
        found = coverage(store, series, Expected(at(0), None))
        assert found.calendar == span(0, 200)
        assert (found.expected, found.present) == (200 // frame, 100 // frame)
        assert found.missing == found.head_missing == 100 // frame
        assert found.worst == (span(0, 100),)
        assert (found.first_ts, found.rows) == (at(100), 100 // frame)
        assert found.longest_gap_bars == 100 // frame


def test_a_head_that_was_answered_and_empty_had_no_trade(store: Store) -> None:
    """Asked for from 0; 10-29 was answered without a bar, the first bar is 30."""
    keep(store, flat(30, 10), 10, 40)
    found = coverage(store, BTC, Expected(at(0), None))
    assert (found.expected, found.present) == (40, 10)
    assert (found.head_missing, found.no_trade, found.missing) == (10, 20, 10)
    from_files = coverage(store, BTC, AS_STORED)
    assert from_files.calendar == span(10, 40)
    assert (from_files.missing, from_files.no_trade) == (0, 20)
    five = coverage(store, FIVE, Expected(at(2), None))
    assert five.calendar == span(5, 40)
    assert (five.head_missing, five.no_trade, five.present) == (1, 4, 2)


def test_a_series_without_a_single_bar_lacks_all_that_was_not_answered(store: Store) -> None:
    keep(store, flat(0, 0), 0, 20)
    found = coverage(store, BTC, Expected(at(-10), at(30)))
    assert (found.first_ts, found.rows, found.expected) == (None, 0, 40)
    assert (found.no_trade, found.missing, found.present) == (20, 20, 0)
    assert found.worst == (span(-10, 0), span(20, 30))


def test_head_hole_and_tail_are_counted_together(store: Store) -> None:
    holed(store)
    found = coverage(store, BTC, Expected(at(-7), at(103)))
    assert (found.head_missing, found.tail_missing, found.missing) == (7, 3, 15)
    assert (found.expected, found.present, found.no_trade) == (110, 94, 1)
    assert found.worst == (span(-7, 0), span(20, 25), span(100, 103))


def test_a_delisted_market_ends_at_its_delisting(store: Store) -> None:
    keep(store, flat(0, 100), 0, 100)
    noticed = Expected(None, at(100) + 20 * 3_600_000, is_listed=False)
    found = coverage(store, BTC, noticed)
    assert (found.missing, found.lag_bars) == (0, 0), "it was gone before anyone noticed"
    stopped = Expected(None, at(100) + 30 * DAY_MS, is_listed=False)
    found = coverage(store, BTC, stopped)
    assert (found.tail_missing, found.lag_bars) == (30 * DAY_MS // MINUTE, 0)


def test_a_bar_that_lacks_minutes_is_there_and_partial(store: Store) -> None:
    holed(store)
    found = coverage(store, FIVE, AS_STORED)
    assert (found.expected, found.present, found.partial) == (20, 19, 1)
    assert (found.no_trade, found.missing) == (0, 1)


def silence(first: int, end: int, due: int = 500) -> Silence:
    return Silence(at(first), at(end), 1, at(end), at(end), at(first), at(due) if due else 0)


@pytest.mark.parametrize("length", [7, windows_module.BARS_PER_WINDOW])
def test_what_is_missing_inside_an_open_silence_is_unconfirmed(
    store: Store, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """A silence before all bars, two in the hole, and one at the end, where bars are settled."""
    monkeypatch.setattr(windows_module, "BARS_PER_WINDOW", length)
    holed(store)
    silences = (silence(-4, -2), silence(20, 21), silence(19, 23, due=400), silence(90, 102))
    found = coverage(store, BTC, Expected(at(-7), at(103), unconfirmed=silences))
    whole = (found.present, found.no_trade, found.missing, found.unconfirmed)
    assert (whole, sum(whole)) == ((94, 1, 8, 7), found.expected)
    assert (found.head_missing, found.tail_missing, found.lag_bars) == (5, 1, 1)
    assert found.worst == (span(-7, -4), span(-2, 0), span(23, 25), span(102, 103))
    assert found.longest_gap_bars == 3
    assert found.gaps_pct == 8 / 110
    ranges = [(each.span, each.asked_again_ms) for each in found.unconfirmed_ranges]
    assert ranges == [(span(20, 23), at(400)), (span(-4, -2), at(500)), (span(100, 102), at(500))]


def test_unconfirmed_slots_do_not_break_the_rule_on_gaps(store: Store) -> None:
    holed(store)
    found = coverage(store, BTC, Expected(None, None, unconfirmed=(silence(20, 25, due=0),)))
    assert (found.missing, found.unconfirmed, found.gaps_pct, found.worst) == (0, 5, 0.0, ())
    [only] = found.unconfirmed_ranges
    assert only.asked_again_ms is None
    assert within_limit(found)
    labels = {"exchange": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}
    assert REGISTRY.get_sample_value("collector_gap_ratio", labels) == 0.0


def test_a_longer_bar_is_unconfirmed_when_all_of_it_is_silent(store: Store) -> None:
    keep(store, flat(0, 20), 0, 20)
    keep(store, flat(40, 10), 40, 50)
    silences = (silence(20, 33), silence(33, 38))
    found = coverage(store, FIVE, Expected(None, None, unconfirmed=silences))
    assert (found.expected, found.present, found.missing, found.unconfirmed) == (10, 6, 1, 3)
    assert found.worst == (span(35, 40),)


def test_a_series_without_a_bar_may_be_unconfirmed(store: Store) -> None:
    found = coverage(store, BTC, Expected(at(0), at(50), unconfirmed=(silence(0, 40),)))
    assert (found.expected, found.missing, found.unconfirmed) == (50, 10, 40)


def test_nothing_stored_is_nothing_expected(store: Store) -> None:
    found = coverage(store, BTC, AS_STORED)
    assert (found.first_ts, found.expected, found.gaps_pct, found.worst) == (None, 0, 0.0, ())
    assert (found.calendar, found.lag_bars) == (None, 0)
    owed = coverage(store, BTC, Expected(at(0), at(50)))
    assert (owed.expected, owed.missing, owed.head_missing) == (50, 50, 50)


def test_windows_do_not_change_the_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    holed(store)
    whole = coverage(store, BTC, AS_STORED)
    for length in (1, 7, 22, 23):
        monkeypatch.setattr(windows_module, "BARS_PER_WINDOW", length)
        assert coverage(store, BTC, AS_STORED) == whole


def test_the_longest_runs_are_kept_and_joined_across_windows() -> None:
    found = MissingRuns(BTC.timeframe, most=2)
    for slots in ([0], [2, 3], [], [4, 5], [9], [20, 21, 22]):
        found.add(np.array([at(n) for n in slots], dtype=np.int64))
    assert found.longest() == (span(2, 6), span(20, 23))
    assert found.bars(span(2, 6)) == 4


def test_more_than_the_limit_is_a_warning_and_a_gauge(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    holed(store)
    found = coverage(store, BTC, AS_STORED)
    with caplog.at_level(logging.WARNING):
        assert within_limit(found, 0.05)
        assert not caplog.records
        assert not within_limit(found, 0.0499)
    assert "gaps_over_limit" in caplog.text
    labels = {"exchange": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}
    assert REGISTRY.get_sample_value("collector_gap_ratio", labels) == 0.05


def test_the_error_names_the_worst_and_has_its_code(store: Store) -> None:
    holed(store)
    found = coverage(store, BTC, AS_STORED)
    error = gaps_error([found], 0.0001)
    assert error is not None
    assert (error.exit_name, error.exit_code) == ("E_GAPS", 10)
    assert "binance BTC/USDT 1m lacks 5 of 100 bars (5.0000%, allowed 0.0100%)" in str(error)
    assert gaps_error([], 0.0001) is None
