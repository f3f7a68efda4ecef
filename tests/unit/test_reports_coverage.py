"""What a series has and lacks, and the rule on gaps."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import pytest
from prometheus_client import REGISTRY

from collector.market.series import Series
from collector.reports import windows as windows_module
from collector.reports.coverage import coverage
from collector.reports.gap_rule import gaps_error, within_limit
from collector.reports.missing_runs import MissingRuns
from collector.store.store import Store
from tests.store_bars import BTC, MINUTE, at, bars, flat, span

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.candles import CandleBatch


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
    found = coverage(store, BTC)
    assert (found.first_ts, found.last_ts) == (at(0), at(99))
    assert (found.expected, found.present, found.no_trade, found.missing) == (100, 94, 1, 5)
    assert found.gaps_pct == 0.05
    assert found.longest_gap_bars == 5
    assert found.worst == (span(20, 25),)


def test_bars_that_are_late_are_not_missing(store: Store) -> None:
    keep(store, flat(0, 10), 0, 10)
    found = coverage(store, BTC)
    assert (found.missing, found.lag_bars(at(13) + 30_000)) == (0, 3)
    assert found.lag_bars(at(10)) == 0


def test_a_longer_bar_that_lacks_a_minute_is_missing_too(store: Store) -> None:
    holed(store)
    found = coverage(store, Series.of("binance", "BTC/USDT", "5m"))
    assert (found.expected, found.present, found.no_trade, found.missing) == (20, 18, 1, 1)


def test_nothing_stored_is_nothing_expected(store: Store) -> None:
    found = coverage(store, BTC)
    assert (found.first_ts, found.expected, found.gaps_pct, found.worst) == (None, 0, 0.0, ())
    assert found.lag_bars(at(0)) == 0


def test_windows_do_not_change_the_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    holed(store)
    whole = coverage(store, BTC)
    for length in (1, 7, 22, 23):
        monkeypatch.setattr(windows_module, "BARS_PER_WINDOW", length)
        assert coverage(store, BTC) == whole


def test_the_longest_runs_are_kept_and_joined_across_windows() -> None:
    found = MissingRuns(MINUTE, most=2)
    for slots in ([0], [2, 3], [], [4, 5], [9], [20, 21, 22]):
        found.add(np.array([at(n) for n in slots], dtype=np.int64))
    assert found.longest() == (span(2, 6), span(20, 23))
    assert found.bars(span(2, 6)) == 4


def test_more_than_the_limit_is_a_warning_and_a_gauge(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    holed(store)
    found = coverage(store, BTC)
    with caplog.at_level(logging.WARNING):
        assert within_limit(found, 0.05)
        assert not caplog.records
        assert not within_limit(found, 0.0499)
    assert "gaps_over_limit" in caplog.text
    labels = {"exchange": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}
    assert REGISTRY.get_sample_value("collector_gap_ratio", labels) == 0.05


def test_the_error_names_the_worst_and_has_its_code(store: Store) -> None:
    holed(store)
    found = coverage(store, BTC)
    error = gaps_error([found], 0.0001)
    assert error is not None
    assert (error.exit_name, error.exit_code) == ("E_GAPS", 10)
    assert "binance BTC/USDT 1m lacks 5 of 100 bars (5.0000%, allowed 0.0100%)" in str(error)
    assert gaps_error([], 0.0001) is None
