"""A range of a stored series: which one is meant, what of it there is, and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from collector.errors import InvalidInput
from collector.market.series import Series
from collector.operations.market_names import check_timeframe
from collector.operations.stored_range import inside
from collector.operations.stored_symbol import stored_symbol
from collector.reader import CandleReader, not_stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.market.interval import Interval
    from collector.store.store import Store

Gaps = Literal["include", "omit"]


@dataclass(frozen=True, slots=True)
class CandlesAsked:
    """Which bars. Moments are epoch ms; None leaves an end open."""

    exchange_id: str
    symbol: str
    timeframe: str
    start_ms: int | None = None
    end_ms: int | None = None
    gaps: Gaps = "include"
    as_of_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CandleStretch:
    """A range of a stored series, inside what there is."""

    reader: CandleReader
    stored: Interval
    """From the first to the last bar that is stored."""
    from_ms: int
    to_ms: int
    gaps: Gaps
    as_of_ms: int | None

    def batches(self, from_ms: int | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows, oldest first, or those from a later moment on."""
        start = self.from_ms if from_ms is None else max(from_ms, self.from_ms)
        if start < self.to_ms:
            yield from self.reader.batches_between(
                start, self.to_ms, gaps=self.gaps, as_of=self.as_of_ms
            )

    def newest(self, limit: int) -> pa.Table:
        """The newest rows. Without gaps one has to look further back, and looks ever further."""
        length = limit * self.reader.series.timeframe.ms
        while True:
            from_ms = self.to_ms - length
            found = pa.Table.from_batches(list(self.batches(from_ms)), self.reader.schema)
            if len(found) >= limit or from_ms <= self.from_ms:
                return found.slice(max(0, len(found) - limit))
            length *= 4


def candle_stretch(store: Store, asked: CandlesAsked) -> CandleStretch:
    """What to read. NotStored names near matches when nothing is stored by that name."""
    series = _series(store, asked)
    with store.reading(series) as reading:
        span = reading.span()
    if span is None:
        raise not_stored(store, series)
    reader = CandleReader(series.symbol, asked.timeframe, asked.exchange_id, store)
    whole = inside(asked.start_ms, asked.end_ms, span)
    return CandleStretch(reader, span, *whole, asked.gaps, asked.as_of_ms)


def _series(store: Store, asked: CandlesAsked) -> Series:
    """Refuses a series that cannot exist."""
    check_timeframe(asked.timeframe)
    symbol = stored_symbol(store, asked.exchange_id, asked.symbol)
    try:
        return Series.of(asked.exchange_id, symbol, asked.timeframe)
    except ValueError as error:
        raise InvalidInput("symbol", "unknown_symbol", str(error)) from error
