"""Weeks that open on the exchange's own day, from the answer to the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from collector.market.answer import sort_rows
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reader import CandleReader
from collector.store.copies import Copies
from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000
THURSDAY = 1_642_032_000_000  # 2022-01-13
MONDAY = THURSDAY + 4 * DAY
WEEK = Timeframe.parse("1w")
OPENS = {"kucoin": THURSDAY, "hyperliquid": THURSDAY, "binance": MONDAY, "simulated": MONDAY}


@pytest.mark.parametrize("exchange_id", OPENS)
@pytest.mark.parametrize("opens", [THURSDAY, MONDAY])
def test_weeks_of_another_day_are_refused(exchange_id: str, opens: int) -> None:
    week = Series.of(exchange_id, "BTC/USDT", "1w").timeframe
    rows = [(opens + n * WEEK.ms, 1.0, 2.0, 1.0, 2.0, 3.0, 4.0) for n in range(3)]
    asked = Interval(opens, opens + 3 * WEEK.ms)
    bars, refused = sort_rows(rows, week, asked, opens + 4 * WEEK.ms)
    if opens == OPENS[exchange_id]:
        assert bars.ts.tolist() == [row[0] for row in rows]
        assert not refused
    else:
        assert {each.reason for each in refused} == {"misaligned"}


@pytest.mark.parametrize("exchange_id", OPENS)
def test_weeks_made_of_minutes_open_on_the_exchanges_day(exchange_id: str, tmp_path: Path) -> None:
    minutes = Series.of(exchange_id, "BTC/USDT", "1m")
    ts = np.arange(THURSDAY - DAY, THURSDAY + 20 * DAY, 60_000)
    one = np.ones(len(ts))
    batch = CandleBatch.of_columns(np.column_stack([ts, *[one] * 6]))
    store = Store(tmp_path, copies=Copies((WEEK,)))
    span = Interval(int(ts[0]), int(ts[-1]) + 60_000)
    store.append_page(minutes, batch, span, fence=1, known_at=1)
    read = CandleReader("BTC/USDT", "1w", exchange_id, store).arrow()
    first = OPENS[exchange_id]
    assert read["ts"].to_pylist() == [first, first + WEEK.ms]
    store.compact(minutes)
    file = tmp_path / exchange_id / "BTC-USDT" / "1w.parquet"
    assert pq.read_table(file)["ts"].to_pylist() == read["ts"].to_pylist()
    assert CandleReader("BTC/USDT", "1w", exchange_id, store).arrow().equals(read)
