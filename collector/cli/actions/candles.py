"""What `collector read` does, and how a series of the lake is found."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from collector.cli.actions.rows import Rows, first_rows, table_facts
from collector.cli.failures import UsageMistake
from collector.cli.moments import range_ms, shown_moment
from collector.cli.output import Output, number, table
from collector.market.series import Series
from collector.operations.lake import span_of
from collector.operations.market_names import check_timeframe
from collector.operations.moments import moment_ms
from collector.reader import CandleReader
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.cli.verb import Asked

Gaps = Literal["include", "omit"]


@dataclass(frozen=True, slots=True)
class Range:
    """What was typed: the moments and what to do with gaps."""

    start: str | None = None
    end: str | None = None
    gaps: Gaps = "include"
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class CandleStretch:
    """A range of a stored series, in epoch ms and inside what there is."""

    reader: CandleReader
    from_ms: int
    to_ms: int
    gaps: Gaps
    as_of: int | None

    def rows(self) -> Rows:
        """All of it, to be written to a file."""
        slot_ms = self.reader.series.timeframe.ms
        whole = (self.from_ms, self.to_ms)
        return Rows(
            "bars", self.reader.schema, self.batches(), *whole, step="bars", step_ms=slot_ms
        )

    def batches(self, from_ms: int | None = None) -> Iterator[pa.RecordBatch]:
        start = self.from_ms if from_ms is None else max(from_ms, self.from_ms)
        if start < self.to_ms:
            yield from self.reader.batches_between(
                start, self.to_ms, gaps=self.gaps, as_of=self.as_of
            )


def read(
    asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range, limit: int
) -> Output:
    """Bars from `start` on, or without one the newest."""
    stretch = stretch_of(asked, exchange_id, symbol, timeframe, given)
    if given.start is None:
        facts = table_facts(last_rows(stretch, limit))
    else:
        facts = table_facts(first_rows(stretch.batches(), stretch.reader.schema, limit))
    rows = facts["rows"]
    if not rows:
        return Output(facts, "no bars in this range")
    headings = ("time (UTC)", "open", "high", "low", "close", "volume", "gap")
    body = [(shown_moment(row[0]), *map(number, row[1:6]), row[10] or " ") for row in rows]
    return Output(facts, table(headings, body, right="open high low close volume"))


def stretch_of(
    asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range
) -> CandleStretch:
    """What to read. NotStored names near matches when nothing is stored by that name."""
    now_ms = time.time_ns() // 1_000_000
    check_timeframe(timeframe)
    try:
        series = Series.of(exchange_id, symbol, timeframe)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
    store = Store(asked.settings().data_root)
    span = span_of(store, series)
    whole = range_ms(given.start, given.end, now_ms, span)
    return CandleStretch(
        CandleReader(symbol, timeframe, exchange_id, store),
        *whole,
        given.gaps,
        None if given.as_of is None else moment_ms(given.as_of, now_ms),
    )


def last_rows(stretch: CandleStretch, limit: int) -> pa.Table:
    """The newest rows. Without gaps one has to look further back, and looks ever further."""
    length = limit * stretch.reader.series.timeframe.ms
    while True:
        from_ms = stretch.to_ms - length
        found = pa.Table.from_batches(list(stretch.batches(from_ms)), stretch.reader.schema)
        if len(found) >= limit or from_ms <= stretch.from_ms:
            return found.slice(max(0, len(found) - limit))
        length *= 4
