"""A range of time in, candles out."""

from __future__ import annotations

import functools
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.pipeline.ladder import Graded, Ladder
from collector.store.address import absolute, with_endpoint
from collector.store.segment import ROWS_PER_GROUP
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from collector.store.port import Storage

    Moment = int | str | date | datetime
    Gaps = Literal["include", "omit"]

GROUPS_PER_BATCH = 2
"""Row groups of a sealed file that are in memory together: some 5 MB, and ten times as much where
parts have to be merged. More of them are not faster."""

_MINUTE = Timeframe.parse("1m")


class DataReader:
    """The candles of one symbol and timeframe, as far as anything is stored.

    A read merges the sealed file with whatever was written since, so it is never behind. Ranges are
    `[start, end)` in UTC, by opening time; either end may be left out. Moments are epoch ms, ISO
    8601 text, dates or datetimes; those without a zone are UTC. `gaps="omit"` leaves out every row
    that is a gap. `as_of` tells what was known at that moment. A timeframe that was never stored is
    made of 1m bars.
    """

    def __init__(
        self,
        symbol: str,
        tf: str,
        exchange: str,
        root: str | os.PathLike[str] | Storage | Store | None = None,
    ) -> None:
        self.series = Series.of(exchange, symbol, tf)
        where = default_root() if root is None else root
        if isinstance(where, str | os.PathLike):
            where = _store_at(absolute(where))
        self._store = where if isinstance(where, Store) else Store(where)

    def read(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        gaps: Gaps = "include",
        as_of: Moment | None = None,
    ) -> pd.DataFrame:
        """The range as a pandas frame with the columns of CANDLE_SCHEMA."""
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
        """The range as one Arrow table with CANDLE_SCHEMA."""
        tables = self._tables(start, end, gaps, as_of)
        return pa.concat_tables([CANDLE_SCHEMA.empty_table(), *tables])

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

    def _tables(
        self, start: Moment | None, end: Moment | None, gaps: Gaps, as_of: Moment | None
    ) -> Iterator[pa.Table]:
        if gaps not in ("include", "omit"):
            raise ValueError(f"gaps is 'include' or 'omit', not {gaps!r}")
        from_ms = 0 if start is None else epoch_ms(start)
        to_ms = 2**52 if end is None else epoch_ms(end)
        known_by = None if as_of is None else epoch_ms(as_of)
        derived = self._is_derived()
        source = Series(self.series.exchange_id, self.series.symbol, _MINUTE)
        told_until = self._store.derived_until(self.series, source) if derived else 0
        for window in self._windows(source if derived else self.series, from_ms, to_ms):
            table = (
                self._derived(source, window, known_by, told_until)
                if derived
                else self._store.rows(self.series, window.from_ms, window.to_ms, as_of=known_by)
            )
            yield table.filter(pc.invert(table["is_gap"])) if gaps == "omit" else table

    def _is_derived(self) -> bool:
        whole = self.series.timeframe.ms % _MINUTE.ms == 0 and self.series.timeframe != _MINUTE
        return whole and not self._store.holds(self.series)

    def _windows(self, stored: Series, from_ms: int, to_ms: int) -> Iterator[Interval]:
        """The asked range, cut into pieces that fit into memory."""
        bars = GROUPS_PER_BATCH * ROWS_PER_GROUP
        if to_ms - from_ms > bars * stored.timeframe.ms:
            span = self._store.span(stored)
            if span is None:
                return
            from_ms, to_ms = max(from_ms, span.from_ms), min(to_ms, span.to_ms)
        timeframe = self.series.timeframe
        length = max(1, bars * stored.timeframe.ms // timeframe.ms) * timeframe.ms
        while from_ms < to_ms:
            cut = min(timeframe.floor(from_ms) + length, to_ms)
            yield Interval(from_ms, cut)
            from_ms = cut

    def _derived(
        self, source: Series, window: Interval, as_of: int | None, told_until: int
    ) -> pa.Table:
        """From their file as far as it is in step with the minutes, and else from the minutes."""
        known = min(window.to_ms, told_until)
        if as_of is not None or known <= window.from_ms:
            return self._made(source, window, as_of)
        ready = self._store.derived_rows(self.series, window.from_ms, known)
        if known == window.to_ms:
            return ready
        return pa.concat_tables([ready, self._made(source, Interval(known, window.to_ms), None)])

    def _made(self, source: Series, window: Interval, as_of: int | None) -> pa.Table:
        timeframe = self.series.timeframe
        start = _ceil(window.from_ms, timeframe)
        end = _ceil(window.to_ms, timeframe)
        table = self._store.rows(source, start, end, as_of=as_of)
        minutes = Graded(CandleBatch.from_arrow(table), table["ver"].to_numpy())
        made = Ladder(_MINUTE, [timeframe]).climb(minutes)[timeframe]
        return made.batch.to_arrow(self.series.exchange_id, made.ver)


@functools.lru_cache(maxsize=16)
def _store_at(root: str) -> Store:
    """One store a place, so that a footer that was read serves every reader of the process."""
    return Store(root)


def default_root() -> str:
    """Where candles lie when nobody says: COLLECTOR_DATA, else `data` below COLLECTOR_HOME."""
    home = os.environ.get("COLLECTOR_HOME") or Path.home() / ".local" / "share" / "collector"
    root = os.environ.get("COLLECTOR_DATA") or str(Path(home) / "data")
    return with_endpoint(root, os.environ.get("COLLECTOR_S3_ENDPOINT"))


def epoch_ms(moment: Moment) -> int:
    """A moment in epoch ms. ValueError for text that is not ISO 8601."""
    if isinstance(moment, int | np.integer):
        return int(moment)
    if isinstance(moment, str):
        if moment.isascii() and moment.isdigit():
            return int(moment)
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _ceil(ts_ms: int, timeframe: Timeframe) -> int:
    return ts_ms if timeframe.aligned(ts_ms) else timeframe.next_open(ts_ms)
