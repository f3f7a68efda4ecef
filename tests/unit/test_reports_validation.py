"""Every check finds what it is there for, and nothing else."""

from __future__ import annotations

import json
import math
import random
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from collector.clock import ManualClock
from collector.errors import ExchangeUnavailable
from collector.market.candles import BAR, CANDLE_SCHEMA, NO_TRADE, PARTIAL, CandleBatch
from collector.market.series import Series
from collector.reports import windows as windows_module
from collector.reports.clock_drift import Drift, clock_drift
from collector.reports.row_checks import RowChecks
from collector.reports.validation import Demands, inspect, unreached, with_check, with_source
from collector.reports.validation_report import ValidationReport
from collector.store.store import Store
from tests.store_bars import BTC, MINUTE, T0, at, bars, flat, span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.reports.validation import SeriesReport

NOW = at(10_000)
QUIET = Demands(samples=0)
FIVE = Series.of("binance", "BTC/USDT", "5m")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def keep(store: Store, series: Series, batch: CandleBatch, first: int, end: int) -> None:
    store.append_page(series, batch, span(first, end), fence=1, known_at=1_000)


def failed(report: SeriesReport) -> dict[str, int]:
    return {name: check.count for name, check in report.checks.items() if not check.ok}


def rows(**columns: Any) -> pa.Table:
    """Ten good minutes, with columns replaced."""
    table = flat(0, 10).to_arrow("binance")
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values))
    return table


def found(*tables: pa.Table) -> dict[str, tuple[int, list[Any]]]:
    checks = RowChecks(BTC, NOW)
    for table in tables:
        checks.add(table)
    return {n: (c.count, c.examples) for n, c in checks.checks.items() if not c.ok}


def replaced(place: int, value: float, name: str = "c") -> list[Any]:
    values = rows()[name].to_pylist()
    values[place] = value
    return values


def test_good_rows_pass_every_check() -> None:
    assert found(rows()) == {}
    assert found(rows().slice(0, 3), rows().slice(3)) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(value: float) -> None:
    assert found(rows(v=replaced(3, value, "v")))["finite"] == (1, [at(3)])


def test_columns_have_their_types_and_no_nulls() -> None:
    assert found(rows(ver=[1.0] * 10)) == {"types": (1, ["ver: double, not int32"])}
    assert found(rows(o=replaced(2, None, "o"))) == {"types": (1, ["o: 1 nulls"])}  # type: ignore[arg-type]


def test_the_low_is_the_lowest_and_the_high_the_highest() -> None:
    assert found(rows(c=replaced(4, 200.0))) == {"ohlc": (1, [at(4)])}
    assert found(rows(o=replaced(5, 1.0, "o"))) == {"ohlc": (1, [at(5)])}


def test_volume_is_not_negative() -> None:
    assert found(rows(v=replaced(6, -1.0, "v"))) == {"volume": (1, [at(6)])}


def test_time_goes_on_by_one_step() -> None:
    ts = rows()["ts"].to_pylist()
    assert found(rows(ts=[*ts[:4], ts[3], *ts[5:]])) == {
        "monotonic": (1, [at(3)]),
        "step": (1, [at(5)]),
    }
    assert found(rows(ts=[*ts[:9], at(11)])) == {"step": (1, [at(11)])}
    assert found(rows(ts=[*ts[:9], at(9) + 1]))["step"] == (1, [at(9) + 1])
    # A window that does not begin where the last one ended.
    assert found(rows().slice(0, 4), rows().slice(5)) == {"step": (1, [at(5)])}
    assert found(rows().slice(0, 4), rows().slice(3)) == {"monotonic": (1, [at(3)])}


def test_nothing_opens_in_the_future() -> None:
    late = [NOW + MINUTE * (n - 8) for n in range(10)]
    assert found(rows(ts=late)) == {"future": (1, [NOW + MINUTE])}


def test_many_cases_are_counted_and_few_are_shown() -> None:
    count, examples = found(rows(v=[-1.0] * 10))["volume"]
    assert (count, examples) == (10, [at(n) for n in range(5)])


def minutes(store: Store) -> None:
    """Twenty minutes; 7 had no trade."""
    keep(store, BTC, bars({n: 100.0 + n for n in range(20) if n != 7}), 0, 20)


def fives(
    store: Store, volumes: dict[int, float] | None = None, second: int = NO_TRADE | PARTIAL
) -> None:
    """The four 5m bars of those minutes. `second` is what the one without minute 7 says of it."""
    sums = {n: sum((100.0 + m) * 10 for m in range(5 * n, 5 * n + 5) if m != 7) for n in range(4)}
    v = {**sums, **(volumes or {})}
    made = CandleBatch.of([(at(5 * n), 1.0, 1.0, 1.0, 1.0, v[n]) for n in range(4)])
    gap = np.array([BAR, second, BAR, BAR], dtype=np.int8)
    keep(store, FIVE, replace(made, gap=gap), 0, 20)


def test_a_longer_bar_holds_the_volume_of_its_minutes(store: Store) -> None:
    minutes(store)
    fives(store)
    assert failed(inspect(store, FIVE, QUIET, now_ms=NOW)) == {}


def test_a_wrong_sum_is_found(store: Store) -> None:
    minutes(store)
    fives(store, {2: 1.0})
    report = inspect(store, FIVE, QUIET, now_ms=NOW)
    assert failed(report) == {"volume_sum": 1}
    assert report.checks["volume_sum"].examples[0]["ts"] == at(10)


def test_a_window_that_lacks_a_minute_has_to_say_so(store: Store) -> None:
    minutes(store)
    fives(store, second=BAR)
    assert failed(inspect(store, FIVE, QUIET, now_ms=NOW)) == {"partial_windows": 1}
    lenient = Demands(samples=0, strict_gaps=False)
    assert failed(inspect(store, FIVE, lenient, now_ms=NOW)) == {}


def test_bars_that_the_store_made_of_minutes_pass(store: Store) -> None:
    minutes(store)
    on_the_fly = inspect(store, FIVE, QUIET, now_ms=NOW)
    store.compact(BTC)
    store.resample(BTC, [FIVE.timeframe])
    for report in (on_the_fly, inspect(store, FIVE, QUIET, now_ms=NOW)):
        assert failed(report) == {}
        assert report.coverage.expected == 4
        assert {"volume_sum", "partial_windows"} <= set(report.checks)


def test_minutes_are_made_of_nothing(store: Store) -> None:
    minutes(store)
    assert "volume_sum" not in inspect(store, BTC, QUIET, now_ms=NOW).checks


def test_gaps_are_a_problem_with_intervals(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    keep(store, BTC, flat(25, 75), 25, 100)
    report = inspect(store, BTC, QUIET, now_ms=NOW)
    assert failed(report) == {"calendar": 5}
    document = report.document()
    assert document["gaps_pct"] == 0.05
    assert document["problem_intervals"] == [{"ts_from": at(20), "ts_to": at(25), "bars": 5}]
    allowed = inspect(store, BTC, Demands(samples=0, max_gap_pct=0.05), now_ms=NOW)
    assert failed(allowed) == {}
    assert len(allowed.document()["problem_intervals"]) == 1


class Venue:
    """An exchange that remembers what it was asked."""

    def __init__(self, batch: CandleBatch) -> None:
        columns = (batch.ts, batch.o, batch.h, batch.l, batch.c, batch.v, batch.t)
        self.rows = list(zip(*(column.tolist() for column in columns), strict=True))
        self.asked: list[tuple[int, int]] = []

    async def __call__(
        self, series: Series, since_ms: int, limit: int
    ) -> Sequence[Sequence[float | None]]:
        self.asked.append((since_ms, limit))
        return [row for row in self.rows if row[0] >= since_ms][:limit]


async def compared(store: Store, venue: Venue, samples: int = 200) -> SeriesReport:
    demands = Demands(samples=samples)
    report = inspect(store, BTC, demands, now_ms=NOW, rng=random.Random(7))
    return await with_source(report, venue)


async def test_random_bars_are_the_exchanges_own(store: Store) -> None:
    batch = bars({n: 100.0 + n for n in range(3_000)})
    keep(store, BTC, batch, 0, 3_000)
    venue = Venue(batch)
    report = await compared(store, venue)
    assert failed(report) == {}
    assert report.sample is not None
    assert len(report.sample) == 200
    # Samples that lie close together share a request.
    assert 3_000 // 500 <= len(venue.asked) < 20
    assert all(limit <= 500 for _, limit in venue.asked)


async def test_a_bar_that_differs_or_is_not_there_is_found(store: Store) -> None:
    batch = flat(0, 300)
    keep(store, BTC, batch, 0, 300)
    changed = Venue(batch)
    changed.rows[5] = (*changed.rows[5][:4], 7.0, *changed.rows[5][5:])
    del changed.rows[9]
    report = await compared(store, changed, samples=300)
    assert failed(report) == {"source": 2}
    first, second = report.checks["source"].examples
    assert first == {"ts": at(5), "column": "c", "stored": 101.0, "source": 7.0}
    assert second == {"ts": at(9), "column": None, "stored": None, "source": None}


async def test_gaps_are_not_compared(store: Store) -> None:
    keep(store, BTC, flat(0, 10), 0, 20)
    report = await compared(store, Venue(flat(0, 10)))
    assert failed(report) == {}
    assert report.sample is not None
    assert len(report.sample) == 10


async def test_an_exchange_that_is_away_is_said_and_not_raised(store: Store) -> None:
    keep(store, BTC, flat(0, 10), 0, 10)

    async def away(series: Series, since_ms: int, limit: int) -> Any:
        raise ExchangeUnavailable("binance: nobody answers")

    report = inspect(store, BTC, Demands(), now_ms=NOW)
    report = await with_source(report, away)
    whole = ValidationReport(NOW, [report], Demands())
    assert [error.exit_name for error in whole.errors()] == ["E_API"]
    assert "nobody answers" in str(next(whole.errors()))


async def test_a_clock_too_far_off_is_found() -> None:
    clock = ManualClock()

    async def server_ms() -> int:
        clock.advance(0.1)
        return clock.wall_ms() + 600

    found = await clock_drift(server_ms, clock)
    assert found == Drift(650.0, 50.0)
    assert not found.ok
    assert not found.check().ok
    assert Drift(-500.0, 0.0).ok
    # A slow answer explains as much as half of the time it took.
    assert Drift(650.0, 200.0).ok


async def test_the_quickest_answer_is_believed() -> None:
    clock, waits = ManualClock(), iter([2.0, 0.0, 1.0])

    async def server_ms() -> int:
        clock.advance(next(waits))
        return clock.wall_ms()

    assert await clock_drift(server_ms, clock) == Drift(0.0, 0.0)


def test_the_gravest_finding_comes_first(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    keep(store, BTC, flat(25, 75), 25, 100)
    report = inspect(store, BTC, QUIET, now_ms=NOW)
    away = unreached(ExchangeUnavailable("away"))
    report = with_check(report, "source", away)
    report.checks["ohlc"].note(3)
    whole = ValidationReport(NOW, [report], QUIET, Drift(9_000.0, 1.0))
    names = [error.exit_name for error in whole.errors()]
    assert names == ["E_SCHEMA", "E_TIME_DRIFT", "E_API", "E_GAPS"]


def test_validate_json_has_the_agreed_form(store: Store) -> None:
    keep(store, BTC, flat(0, 20), 0, 20)
    report = ValidationReport(T0, [inspect(store, BTC, QUIET, now_ms=NOW)], QUIET)
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
    assert long < 1.5 * short


def test_the_schema_of_the_checks_is_the_readers() -> None:
    assert set(rows().schema.names) == set(CANDLE_SCHEMA.names)
