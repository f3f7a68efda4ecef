"""A series by the window: every slot of its calendar in order, a few megabytes at a time.

Reports read whole series, and ten years of minutes must cost no more memory than a month of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from collector.market.candles import CANDLE_SCHEMA
from collector.reader import GROUPS_PER_BATCH, DataReader
from collector.store.segment import ROWS_PER_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.market.series import Series
    from collector.store.store import Store

BARS_PER_WINDOW = GROUPS_PER_BATCH * ROWS_PER_GROUP


def windows(
    store: Store, series: Series, columns: Sequence[str] = CANDLE_SCHEMA.names
) -> Iterator[pa.Table]:
    """The rows of the series, ascending. A timeframe that was never stored is made of 1m bars."""
    if not store.holds(series):
        reader = DataReader(series.symbol, series.timeframe.name, series.exchange_id, store)
        for batch in reader.batches():
            yield pa.Table.from_batches([batch]).select(list(columns))
        return
    span = store.span(series)
    if span is None:
        return
    length = BARS_PER_WINDOW * series.timeframe.ms
    for from_ms in range(span.from_ms, span.to_ms, length):
        to_ms = min(from_ms + length, span.to_ms)
        yield store.rows(series, from_ms, to_ms, columns=columns)
