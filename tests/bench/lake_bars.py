"""Made-up minutes with the look of real ones, and a lake of them, sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

MINUTE_MS = 60_000
DAY_MS = 86_400_000
YEAR_DAYS = 365
START_MS = 1_420_070_400_000
"""2015-01-01."""
SERIES = Series.of("simulated", "BTC/USDT", "1m")
PAGE_BARS = 100_000


def minutes(days: int, first_day: int = 0) -> CandleBatch:
    """So many days of minutes without a gap: a random walk, in cents, the same every time."""
    count = days * DAY_MS // MINUTE_MS
    random = np.random.default_rng(first_day)
    close = np.round(40_000 + np.cumsum(random.normal(0, 5, count)), 2)
    opened = np.concatenate([close[:1], close[:-1]])
    high = np.round(np.maximum(opened, close) + random.exponential(3, count), 2)
    low = np.round(np.minimum(opened, close) - random.exponential(3, count), 2)
    volume = np.round(random.exponential(10, count), 5)
    ts = START_MS + first_day * DAY_MS + MINUTE_MS * np.arange(count)
    columns = (ts, opened, high, low, close, volume, np.round(volume * close, 2))
    return CandleBatch.of_columns(np.column_stack(columns))


def sealed_lake(root: Path, days: int) -> Store:
    """A store whose one series reaches back so many days, all of it compacted."""
    store = Store(root, copies=Copies(DEFAULT_TIMEFRAMES, tail_days=14))
    for first_day in range(0, days, YEAR_DAYS):
        year = minutes(min(YEAR_DAYS, days - first_day), first_day)
        for at in range(0, len(year), PAGE_BARS):
            append(store, year.take(slice(at, at + PAGE_BARS)))
    store.compact(SERIES)
    return store


def append(store: Store, batch: CandleBatch) -> None:
    store.append_page(SERIES, batch, hull(batch), fence=1, known_at=int(batch.ts[-1]))


def hull(batch: CandleBatch) -> Interval:
    return Interval(int(batch.ts[0]), int(batch.ts[-1]) + MINUTE_MS)
