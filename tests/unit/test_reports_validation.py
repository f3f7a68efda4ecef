"""The report of a validation: gaps, the order of its errors, its form, and the memory it takes."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from collector.errors import ExchangeUnavailable
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.reports import windows as windows_module
from collector.reports.clock_drift import Drift
from collector.reports.expected import Expected
from collector.reports.validation import Demands, inspect, unreached
from collector.reports.validation_report import ValidationReport
from collector.store.store import Store
from tests.support.bars import BTC, MINUTE, T0, at, flat
from tests.support.validated import AS_STORED, NOW, QUIET, failed, keep

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_gaps_are_a_problem_with_intervals(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    keep(store, BTC, flat(25, 75), 25, 100)
    report = inspect(store, BTC, QUIET, AS_STORED, now_ms=NOW)
    assert failed(report) == {"calendar": 5}
    document = report.document()
    assert document["gaps_pct"] == 0.05
    assert document["problem_intervals"] == [{"ts_from": at(20), "ts_to": at(25), "bars": 5}]
    allowed = inspect(store, BTC, Demands(samples=0, max_gap_pct=0.05), AS_STORED, now_ms=NOW)
    assert failed(allowed) == {}
    assert len(allowed.document()["problem_intervals"]) == 1


def test_a_tail_that_never_came_fails_the_calendar(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    report = inspect(store, BTC, QUIET, Expected.by_now(NOW), now_ms=NOW)
    assert failed(report) == {"calendar": 10_000 - 20 - 5}
    assert report.document()["lag_bars"] == report.document()["tail_missing"] == 9_975
    [gaps] = ValidationReport(NOW, [report], QUIET).errors()
    assert gaps.exit_name == "E_GAPS"


def test_the_gravest_finding_comes_first(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    keep(store, BTC, flat(25, 75), 25, 100)
    report = inspect(store, BTC, QUIET, AS_STORED, now_ms=NOW)
    away = unreached(ExchangeUnavailable("away"))
    report = report.with_check("source", away)
    report.checks["ohlc"].note(3)
    whole = ValidationReport(NOW, [report], QUIET, Drift(9_000.0, 1.0))
    names = [error.exit_name for error in whole.errors()]
    assert names == ["E_SCHEMA", "E_TIME_DRIFT", "E_API", "E_GAPS"]


def test_validate_json_has_the_agreed_form(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    report = ValidationReport(T0, [inspect(store, BTC, QUIET, AS_STORED, now_ms=NOW)], QUIET)
    document = json.loads(report.to_json())
    assert list(document) == ["generated_at", "build_signature", "series", "summary"]
    assert document["generated_at"] == "2024-01-01T00:00:00.000Z"
    assert document["build_signature"].startswith("collector/")
    [series] = document["series"]
    assert list(series) == [
        "exchange",
        "symbol",
        "tf",
        "rows",
        "first_ts",
        "last_ts",
        "checks",
        "gaps_pct",
        "longest_gap_bars",
        "problem_intervals",
        "expected",
        "present",
        "partial",
        "no_trade",
        "missing",
        "head_missing",
        "tail_missing",
        "lag_bars",
        "unconfirmed",
    ]
    for check in series["checks"].values():
        assert check == {"ok": True, "count": 0, "examples": []}
    assert document["summary"]["ok"] is True


def test_a_longer_series_costs_no_more_memory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_module, "BARS_PER_WINDOW", 10_000)

    def peak(series: Series, bars_stored: int) -> int:
        ts = T0 + np.arange(bars_stored) * MINUTE
        table = np.column_stack([ts, *(np.full(bars_stored, 1.5) for _ in range(6))])
        keep(store, series, CandleBatch.of_columns(table), 0, bars_stored)
        store.compact(series)
        tables = [pa.total_allocated_bytes()]
        tracemalloc.start()
        try:
            report = inspect(
                store,
                series,
                QUIET,
                AS_STORED,
                now_ms=at(10**8),
                on_rows=lambda _: tables.append(pa.total_allocated_bytes()),
            )
        finally:
            _, arrays = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert report.ok
        assert report.coverage.expected == bars_stored
        return arrays + max(tables) - tables[0]

    short = peak(Series.of("binance", "SHORT/USDT", "1m"), 40_000)
    long = peak(Series.of("binance", "LONG/USDT", "1m"), 200_000)
    # Five times as long; how much is read ahead depends on how busy the machine is.
    assert long < 2.5 * short
