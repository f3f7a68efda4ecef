"""Bars, series and real recordings for the tests of market, pipeline, store and reader."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series

MINUTE = 60_000
T0 = 1_704_067_200_000
"""2024-01-01, a Monday."""
BTC = Series.of("binance", "BTC/USDT", "1m")
ETH = Series.of("binance", "ETH/USDT", "1m")


def at(slot: int) -> int:
    return T0 + slot * MINUTE


def span(first: int, end: int) -> Interval:
    """The minutes `[first, end)` of 2024."""
    return Interval(at(first), at(end))


def bars(prices: dict[int, float]) -> CandleBatch:
    """One bar a minute given, recognisable by its price."""
    rows = [(at(slot), p, p + 2.0, p - 1.0, p + 1.0, p * 10, p * 100) for slot, p in prices.items()]
    return CandleBatch.of(rows)


def flat(first: int, count: int, price: float = 100.0) -> CandleBatch:
    return bars(dict.fromkeys(range(first, first + count), price))


def recording(name: str) -> pa.Table:
    """What others recorded from an exchange, from ../shared/data beside the checkout."""
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / f"{name}.feather"
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} is missing: CI must test on real bars")
        pytest.skip(f"{path} is missing")
    return feather.read_table(path)


def recorded(name: str) -> CandleBatch:
    """Bars that others recorded from an exchange."""
    table = recording(name)
    ts = table["date"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
    columns = [table[name].to_numpy() for name in ("open", "high", "low", "close", "volume")]
    return CandleBatch.of_columns(np.column_stack([ts, *columns, np.full(len(ts), np.nan)]))
