"""A range of time in, candles out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from collector.errors import NotStored
from collector.market.candles import bars_of, candle_schema
from collector.market.moment import epoch_ms
from collector.market.near import did_you_mean, near
from collector.market.series import Series
from collector.reader.place import store_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from collector.market.moment import Moment
    from collector.reader.place import Root
    from collector.store.store import Store

    Gaps = Literal["include", "omit"]

_END_OF_TIME = 2**52


class CandleReader:
    """The candles of one symbol and timeframe, as far as anything is stored.

    A read merges the sealed file with everything written since, so it is never behind. Ranges are
    `[start, end)` in UTC, by opening time; either end may be left out. Moments are written in any
    form that `collector.market.moment` reads: ISO 8601 text, 20240102, epoch ms or seconds, dates,
    datetimes, np.datetime64. `gaps="omit"` leaves out fillers; bars that lack some of their minutes
    stay. `as_of` returns what was known at that moment.

    Bars of the timeframe that the exchange sent come first; slots without one are filled with bars
    made of shorter ones, whichever are stored. A read shows the data as of its beginning, however
    many batches it has (`collector.store.reading` explains this in the presence of writers).

    Raises NotStored, with similar names, when nothing is stored by that name. A range without rows
    is an empty frame.
    """

    def __init__(self, symbol: str, tf: str, exchange: str, root: Root | None = None) -> None:
        self.series = Series.of(exchange, symbol, tf)
        self._store = store_at(root)
        self.schema = candle_schema(self.series.extra)
        """CANDLE_SCHEMA, and behind it the further columns of the exchange, if it has some."""

    def read(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        gaps: Gaps = "include",
        as_of: Moment | None = None,
    ) -> pd.DataFrame:
        """The range as a pandas frame with the columns of `schema`."""
        frame: pd.DataFrame = self.arrow(start, end, gaps=gaps, as_of=as_of).to_pandas()
        return frame

    def arrow(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        gaps: Gaps = "include",
        as_of: Moment | None = None,
    ) -> pa.Table:
        """The range as one Arrow table with `schema`."""
        tables = self._tables(start, end, gaps, as_of)
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def polars(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        gaps: Gaps = "include",
        as_of: Moment | None = None,
    ) -> Any:
        """The range as a polars frame; needs the `polars` package."""
        import polars

        return polars.from_arrow(self.arrow(start, end, gaps=gaps, as_of=as_of))

    def batches(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        gaps: Gaps = "include",
        as_of: Moment | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The range in ascending batches of some megabytes, whatever its length."""
        for table in self._tables(start, end, gaps, as_of):
            yield from table.combine_chunks().to_batches()

    def batches_between(
        self,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        gaps: Gaps = "include",
        as_of: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same for callers that have epoch ms."""
        for table in self._read(from_ms, to_ms, gaps, as_of):
            yield from table.combine_chunks().to_batches()

    def is_stored(self) -> bool:
        """Whether anything is stored that this timeframe can be read from."""
        with self._store.reading(self.series) as reading:
            return reading.is_stored

    def not_stored(self) -> NotStored:
        """The error of a read when nothing is stored, with what there is instead."""
        return not_stored(self._store, self.series)

    def _tables(
        self, start: Moment | None, end: Moment | None, gaps: Gaps, as_of: Moment | None
    ) -> Iterator[pa.Table]:
        given = (None if each is None else epoch_ms(each) for each in (start, end, as_of))
        from_ms, to_ms, known_by = given
        return self._read(from_ms, to_ms, gaps, known_by)

    def _read(
        self, from_ms: int | None, to_ms: int | None, gaps: Gaps, as_of: int | None
    ) -> Iterator[pa.Table]:
        if gaps not in ("include", "omit"):
            raise ValueError(f"gaps is 'include' or 'omit', not {gaps!r}")
        end_ms = _END_OF_TIME if to_ms is None else to_ms
        with self._store.reading(self.series) as reading:
            if not reading.is_stored:
                raise self.not_stored()
            for table in reading.tables(from_ms or 0, end_ms, as_of=as_of):
                yield bars_of(table) if gaps == "omit" else table


def not_stored(store: Store, series: Series) -> NotStored:
    """The error for a series of which nothing is stored, with what is stored instead."""
    stored = store.series()
    message = f"nothing is stored for {series}"
    if not stored:
        return NotStored(f"{message}: nothing was collected yet")
    exchanges = {each.exchange_id for each in stored}
    if series.exchange_id not in exchanges:
        hint = did_you_mean(series.exchange_id, exchanges)
        return NotStored(f"{message}{hint}", near(series.exchange_id, exchanges))
    here = {each.symbol for each in stored if each.exchange_id == series.exchange_id}
    if series.symbol not in here:
        return NotStored(f"{message}{did_you_mean(series.symbol, here)}", near(series.symbol, here))
    frames = [
        each.timeframe
        for each in stored
        if (each.exchange_id, each.symbol) == (series.exchange_id, series.symbol)
    ]
    names = tuple(frame.name for frame in sorted(frames))
    return NotStored(f"{message}; there is {', '.join(names)}", names)
