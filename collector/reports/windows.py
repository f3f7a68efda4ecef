"""A series by the window: every slot of its calendar in order, a few megabytes at a time.

Reports read whole series, and ten years of minutes must cost no more memory than a month of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.market.candles import CANDLE_SCHEMA
from collector.store.reading import GROUPS_PER_BATCH
from collector.store.segment import ROWS_PER_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from collector.store.reading import SeriesReading

BARS_PER_WINDOW = GROUPS_PER_BATCH * ROWS_PER_GROUP


def windows(
    reading: SeriesReading, columns: Sequence[str] = CANDLE_SCHEMA.names
) -> Iterator[pa.Table]:
    """The rows of a series as readers get them, ascending."""
    span = reading.span()
    if span is not None:
        yield from reading.tables(span.from_ms, span.to_ms, columns=columns, bars=BARS_PER_WINDOW)
