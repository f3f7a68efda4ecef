"""Batches and their tables."""

from __future__ import annotations

import numpy as np

from collector.market.candles import (
    BAR,
    CANDLE_SCHEMA,
    MISSING,
    NO_TRADE,
    PARTIAL,
    CandleBatch,
    bars_of,
)
from tests.support.bars import at, bars


def test_a_table_has_the_seeds_columns() -> None:
    table = bars({0: 5.0}).to_arrow("binance")
    assert table.schema.equals(CANDLE_SCHEMA)
    assert table.column_names == [
        "ts",
        "o",
        "h",
        "l",
        "c",
        "v",
        "t",
        "ver",
        "is_gap",
        "source",
        "gap_reason",
    ]
    assert table.to_pylist() == [
        {
            "ts": at(0),
            "o": 5.0,
            "h": 7.0,
            "l": 4.0,
            "c": 6.0,
            "v": 50.0,
            "t": 500.0,
            "ver": 1,
            "is_gap": False,
            "source": "binance",
            "gap_reason": None,
        }
    ]


def test_an_unknown_turnover_is_null() -> None:
    batch = CandleBatch.of([(at(0), 1, 1, 1, 1, 0)])
    assert batch.to_arrow("binance")["t"].to_pylist() == [None]


def test_gaps_come_back_as_they_went() -> None:
    batch = bars({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0})
    batch.gap[:] = [BAR, NO_TRADE, MISSING, PARTIAL]
    table = batch.to_arrow("binance")
    assert table["is_gap"].to_pylist() == [False, True, True, True]
    assert table["gap_reason"].to_pylist() == [None, "no_trade", "missing", "partial"]
    assert CandleBatch.from_arrow(table).gap.tolist() == batch.gap.tolist()
    assert bars_of(table)["ts"].to_pylist() == [at(0), at(3)]


def test_minus_zero_is_zero() -> None:
    batch = CandleBatch.of([(at(0), 0.0, 0.0, -0.0, 0.0, -0.0)])
    assert not np.signbit(batch.l).any()
    assert not np.signbit(batch.v).any()


def test_an_empty_batch_is_a_batch() -> None:
    assert len(CandleBatch.empty()) == 0
    assert CandleBatch.empty().to_arrow("x").num_rows == 0
    assert len(CandleBatch.concat([])) == 0
