"""What `collector read` does, and how a series of the lake is found."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from collector.cli.actions.known import known_timeframe
from collector.cli.actions.rows import Rows, first_rows, table_facts
from collector.cli.answer import Answer, number, table
from collector.cli.failures import UsageMistake
from collector.cli.moments import moment_ms, range_ms, shown_moment
from collector.cli.near import did_you_mean
from collector.errors import NotFound
from collector.market.candles import CANDLE_SCHEMA
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reader import DataReader
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.cli.verb import Asked
    from collector.market.interval import Interval

Gaps = Literal["include", "omit"]
_MINUTE = Timeframe.parse("1m")


@dataclass(frozen=True, slots=True)
class Range:
    """What was typed: the moments and what to do with gaps."""

    start: str | None = None
    end: str | None = None
    gaps: Gaps = "include"
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of a stored series, in epoch ms and inside what there is."""

    reader: DataReader
    from_ms: int
    to_ms: int
    gaps: Gaps
    as_of: int | None

    def rows(self) -> Rows:
        """All of it, to be written to a file."""
        slot_ms = self.reader.series.timeframe.ms
        whole = (self.from_ms, self.to_ms)
        return Rows("bars", CANDLE_SCHEMA, self.batches(), *whole, step="bars", step_ms=slot_ms)

    def batches(self, from_ms: int | None = None) -> Iterator[pa.RecordBatch]:
        start = self.from_ms if from_ms is None else max(from_ms, self.from_ms)
        if start < self.to_ms:
            yield from self.reader.batches(start, self.to_ms, gaps=self.gaps, as_of=self.as_of)


def read(
    asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range, limit: int
) -> Answer:
    """Bars from `start` on, or without one the newest."""
    stretch = stretch_of(asked, exchange_id, symbol, timeframe, given)
    if given.start is None:
        facts = table_facts(last_rows(stretch, limit))
    else:
        facts = table_facts(first_rows(stretch.batches(), CANDLE_SCHEMA, limit))
    rows = facts["rows"]
    if not rows:
        return Answer(facts, "no bars in this range")
    headings = ("time (UTC)", "open", "high", "low", "close", "volume", "gap")
    body = [(shown_moment(row[0]), *map(number, row[1:6]), row[10] or " ") for row in rows]
    return Answer(facts, table(headings, body, right="open high low close volume"))


def stretch_of(
    asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range
) -> Stretch:
    """What to read. NotFound names near matches when nothing is stored by that name."""
    now_ms = time.time_ns() // 1_000_000
    known_timeframe(timeframe)
    try:
        series = Series.of(exchange_id, symbol, timeframe)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
    store = Store(asked.settings().data_root)
    span = span_of(store, series)
    whole = range_ms(given.start, given.end, now_ms, span)
    return Stretch(
        DataReader(symbol, timeframe, exchange_id, store),
        *whole,
        given.gaps,
        None if given.as_of is None else moment_ms(given.as_of, now_ms),
    )


def span_of(store: Store, series: Series) -> Interval:
    """From the first to the last bar. A timeframe that is not stored is made of minutes."""
    minutes = Series(series.exchange_id, series.symbol, _MINUTE)
    for stored in (series, minutes):
        span = store.span(stored) if store.holds(stored) else None
        if span is not None:
            return span
    raise NotFound(f"nothing is stored for {series}{_hint(store, series)}")


def last_rows(stretch: Stretch, limit: int) -> pa.Table:
    """The newest rows. Without gaps one has to look further back, and looks ever further."""
    length = limit * stretch.reader.series.timeframe.ms
    while True:
        from_ms = stretch.to_ms - length
        found = pa.Table.from_batches(list(stretch.batches(from_ms)), CANDLE_SCHEMA)
        if len(found) >= limit or from_ms <= stretch.from_ms:
            return found.slice(max(0, len(found) - limit))
        length *= 4


def _hint(store: Store, series: Series) -> str:
    stored = store.series()
    if not stored:
        return ": nothing was collected yet"
    here = {each.symbol for each in stored if each.exchange_id == series.exchange_id}
    if not here:
        return did_you_mean(series.exchange_id, {each.exchange_id for each in stored})
    if series.symbol not in here:
        return did_you_mean(series.symbol, here)
    frames = sorted(e.timeframe for e in stored if e.symbol == series.symbol)
    return f"; there is {', '.join(map(str, frames))}"
