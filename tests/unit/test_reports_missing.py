"""missing.csv, its summary, and what is recommended."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pyarrow.parquet as parquet
import pytest

from collector.cli.actions.reports import unconfirmed_words
from collector.market.series import Series
from collector.pipeline.evidence import Silence
from collector.reports.coverage import coverage
from collector.reports.expected import Expected
from collector.reports.missing import MissingReport
from collector.store.store import Store
from tests.support.bars import BTC, ETH, MINUTE, at, flat, span

if TYPE_CHECKING:
    from pathlib import Path

DAY = 1_440
AS_STORED = Expected(None, None)


@pytest.fixture
def report(tmp_path: Path) -> MissingReport:
    """BTC lacks five minutes and, later, more than a day; ETH lacks nothing."""
    store = Store(tmp_path)
    for first, count in ((0, 20), (25, 75), (100 + DAY, 100)):
        stretch = span(first, first + count)
        store.append_page(BTC, flat(first, count), stretch, fence=1, known_at=1_000)
    store.append_page(ETH, flat(0, 10), span(0, 10), fence=1, known_at=1_000)
    return MissingReport([coverage(store, each, AS_STORED) for each in (BTC, ETH)])


def test_csv_has_the_specified_columns_first(report: MissingReport) -> None:
    sink = io.BytesIO()
    report.write(sink, "csv")
    first, second = csv.DictReader(io.StringIO(sink.getvalue().decode()))
    assert list(first) == [
        "symbol",
        "tf",
        "ts_from",
        "ts_to",
        "gaps_pct",
        "gaps_count",
        "longest_gap_bars",
        "exchange",
        "expected",
        "no_trade",
        "partial",
        "head_missing",
        "tail_missing",
        "lag_bars",
        "unconfirmed",
    ]
    slots = 200 + DAY
    assert (first["symbol"], first["tf"], first["exchange"]) == ("BTC/USDT", "1m", "binance")
    assert (int(first["ts_from"]), int(first["ts_to"])) == (at(0), at(slots))
    assert float(first["gaps_pct"]) == pytest.approx((5 + DAY) / slots)
    assert (int(first["gaps_count"]), int(first["longest_gap_bars"])) == (5 + DAY, DAY)
    assert (second["symbol"], second["gaps_count"]) == ("ETH/USDT", "0")


@pytest.mark.parametrize("symbol", ["=HYPERLINK(1)/USDT", "+1/USDT", "-1/USDT", "@A/USDT"])
def test_no_symbol_is_a_formula_of_a_spreadsheet(tmp_path: Path, symbol: str) -> None:
    store, series = Store(tmp_path), Series.of("binance", symbol, "1m")
    store.append_page(series, flat(0, 10), span(0, 10), fence=1, known_at=1_000)
    report = MissingReport([coverage(store, series, AS_STORED)])
    sink = io.BytesIO()
    report.write(sink, "csv")
    [row] = csv.DictReader(io.StringIO(sink.getvalue().decode()))
    assert row["symbol"] == f"'{symbol}"
    assert [each["symbol"] for each in report.rows()] == [symbol], "programs read it as it is"


def test_losses_at_both_ends_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append_page(BTC, flat(10, 80), span(5, 90), fence=1, known_at=1_000)
    [row] = MissingReport([coverage(store, BTC, Expected(at(0), at(100)))]).rows()
    assert (row["ts_from"], row["ts_to"], row["expected"]) == (at(0), at(100), 100)
    assert (row["head_missing"], row["no_trade"], row["tail_missing"]) == (5, 5, 10)
    assert (row["gaps_count"], row["gaps_pct"], row["lag_bars"]) == (15, 0.15, 10)


def test_unconfirmed_ranges_are_told_apart_and_with_their_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for first, count in ((0, 20), (50, 50)):
        stretch = span(first, first + count)
        store.append_page(BTC, flat(first, count), stretch, fence=1, known_at=1_000)
    heard = Silence(at(20), at(49), 1, at(100), at(100), at(20), at(200))
    expected = Expected(None, None, unconfirmed=(heard,))
    report = MissingReport([coverage(store, BTC, expected)])
    [row] = report.rows()
    assert (row["gaps_count"], row["unconfirmed"], row["gaps_pct"]) == (1, 29, 0.01)
    summary = report.summary()
    assert (summary["missing"], summary["unconfirmed"]) == (1, 29)
    assert [each["bars"] for each in summary["worst"]] == [1]
    assert summary["unconfirmed_ranges"] == [
        {
            "exchange": "binance",
            "symbol": "BTC/USDT",
            "tf": "1m",
            "ts_from": at(20),
            "ts_to": at(49),
            "bars": 29,
            "asked_again": at(200),
        }
    ]
    assert unconfirmed_words(summary["unconfirmed_ranges"][0]) == (
        "binance BTC/USDT 1m: 29 bars from 2024-01-01 00:20:00 on are unconfirmed, "
        "asked again at 2024-01-01 03:20:00"
    )


def test_parquet_holds_the_same_rows(report: MissingReport) -> None:
    sink = io.BytesIO()
    report.write(sink, "parquet")
    assert parquet.read_table(io.BytesIO(sink.getvalue())).to_pylist() == report.rows()


def test_the_summary_names_the_worst_first_and_what_to_do(report: MissingReport) -> None:
    summary = json.loads(report.summary_json())
    assert (summary["series"], summary["missing"]) == (2, 5 + DAY)
    assert summary["over_limit"] == ["binance BTC/USDT 1m"]
    longest, short = summary["worst"]
    assert (longest["ts_from"], longest["bars"]) == (at(100), DAY)
    assert longest["advice"] == "check_delisting_or_rename"
    assert (short["ts_to"] - short["ts_from"], short["advice"]) == (5 * MINUTE, "load_again")
    assert len(summary["recommendations"]) == 2
    assert "delisted or renamed" in summary["recommendations"][0]
    assert "datalayer backfill" in summary["recommendations"][1]


def test_the_worst_of_many_are_few(report: MissingReport) -> None:
    [only] = report.problems(1)
    assert only.bars == DAY


def test_nothing_to_report_is_a_header_alone() -> None:
    sink = io.BytesIO()
    MissingReport([]).write(sink, "csv")
    assert sink.getvalue().decode().startswith("symbol,tf,ts_from")
    assert sink.getvalue().count(b"\n") == 1
    assert MissingReport([]).summary()["gaps_pct"] == 0.0
