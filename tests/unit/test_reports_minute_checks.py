"""Longer bars are checked against the minutes they were made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from collector.market.candles import BAR, PARTIAL, CandleBatch
from collector.market.series import Series
from collector.reports.minute_checks import MinuteChecks
from collector.reports.validation import Demands, inspect
from collector.store.store import Store
from tests.support.bars import BTC, at, bars
from tests.support.validated import AS_STORED, NOW, QUIET, failed, keep

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

FIVE = Series.of("binance", "BTC/USDT", "5m")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def minutes(store: Store) -> None:
    """Twenty minutes; 7 had no trade."""
    keep(store, BTC, bars({n: 100.0 + n for n in range(20) if n != 7}), 0, 20)


def fives(volumes: dict[int, float] | None = None, second: int = PARTIAL) -> pa.Table:
    """The four 5m bars of those minutes. `second` is what the one without minute 7 says of it."""
    sums = {n: sum((100.0 + m) * 10 for m in range(5 * n, 5 * n + 5) if m != 7) for n in range(4)}
    v = {**sums, **(volumes or {})}
    made = CandleBatch.of([(at(5 * n), 1.0, 1.0, 1.0, 1.0, v[n]) for n in range(4)])
    gap = np.array([BAR, second, BAR, BAR], dtype=np.int8)
    return replace(made, gap=gap).to_arrow("binance")


def against_minutes(store: Store, table: pa.Table, *, strict_gaps: bool = True) -> dict[str, int]:
    checked = MinuteChecks(store, FIVE, strict_gaps=strict_gaps)
    checked.add(table)
    return {name: check.count for name, check in checked.checks.items() if not check.ok}


def test_a_longer_bar_holds_the_volume_of_its_minutes(store: Store) -> None:
    minutes(store)
    assert against_minutes(store, fives()) == {}
    assert against_minutes(store, fives({2: 1.0})) == {"volume_sum": 1}


def test_a_window_that_lacks_a_minute_has_to_say_so(store: Store) -> None:
    minutes(store)
    assert against_minutes(store, fives(second=BAR)) == {"partial_windows": 1}
    assert against_minutes(store, fives(second=BAR), strict_gaps=False) == {}


def test_bars_that_the_exchange_sent_are_not_judged_by_our_minutes(store: Store) -> None:
    minutes(store)
    keep(store, FIVE, CandleBatch.of([(at(5), 1.0, 2.0, 1.0, 1.0, 4_444.0)]), 5, 10)
    report = inspect(store, FIVE, QUIET, AS_STORED, now_ms=NOW)
    assert failed(report) == {}
    assert "volume_sum" not in report.checks
    assert report.coverage.present == 4
    assert inspect(store, FIVE, Demands(), AS_STORED, now_ms=NOW).sample is not None


def test_bars_that_the_store_made_of_minutes_pass(store: Store) -> None:
    minutes(store)
    on_the_fly = inspect(store, FIVE, QUIET, AS_STORED, now_ms=NOW)
    store.compact(BTC)
    store.resample(BTC, [FIVE.timeframe])
    for report in (on_the_fly, inspect(store, FIVE, QUIET, AS_STORED, now_ms=NOW)):
        assert failed(report) == {}
        assert report.coverage.expected == 4
        assert {"volume_sum", "partial_windows"} <= set(report.checks)


def test_minutes_are_made_of_nothing(store: Store) -> None:
    minutes(store)
    assert "volume_sum" not in inspect(store, BTC, QUIET, AS_STORED, now_ms=NOW).checks
