"""A range of a series as a reader sees it: every slot of the calendar, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.interval import Interval, subtract, unbroken
from collector.market.labels import Labels
from collector.pipeline.calendar import calendar
from collector.pipeline.fold import Sightings, Versions
from collector.store.segment import names_of, schema_of, to_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.store.snapshot import SeriesSnapshot


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a read contained of a series when it began, for when its files change later.

    newest   the latest time at which one of its bars was known end_ms   where its calendar ended
    covered  what answers covered: ascending and disjoint
    """

    newest: int
    end_ms: int
    covered: tuple[Interval, ...]

    @classmethod
    def at(cls, snapshot: SeriesSnapshot, as_of: int | None) -> FirstLook:
        moments = [page.known_at for pages in snapshot.unmerged().values() for page in pages]
        sealed = 0 if snapshot.sealed is None else snapshot.sealed.file.latest_known_at()
        return cls(max([sealed, *moments]), snapshot.end_ms(as_of), snapshot.covered())


def rows(
    snapshot: SeriesSnapshot,
    from_ms: int,
    to_ms: int,
    as_of: int | None = None,
    columns: Sequence[str] | None = None,
    first: FirstLook | None = None,
) -> pa.Table:
    """The calendar of `[from_ms, to_ms)`, bars and the fillers between them.

    `columns` are those of the series' files that are wanted, or all. With `first`, as it was at
    that look.
    """
    columns = names_of(snapshot.series) if columns is None else columns
    newest = None if first is None else first.newest
    known_by = min((each for each in (as_of, newest) if each is not None), default=None)
    if known_by is None and (ready := _sealed_rows(snapshot, from_ms, to_ms, columns)) is not None:
        return ready
    timeframe = snapshot.series.timeframe
    start = timeframe.ceil(from_ms)
    current = snapshot.current(start, to_ms, known_by)
    # After the history, so that a part found damaged meanwhile covers nothing.
    end = min(to_ms, snapshot.end_ms(as_of) if first is None else first.end_ms)
    if start >= end:
        return schema_of(snapshot.series).empty_table().select(columns)
    opens = len(current) and current.rows.batch.ts[0] == start
    before = None if opens else snapshot.last_before(start, known_by)
    covered = snapshot.covered(start, end) if first is None else first.covered
    if as_of is not None:
        # A slot whose bar came later was not covered then.
        later = snapshot.current(start, end, newest).rows.batch.ts
        unknown = later[~np.isin(later, current.rows.batch.ts, assume_unique=True)]
        covered = subtract(covered, unbroken(unknown, timeframe))
    span = Interval(start, end)
    return with_fillers(current, snapshot.series, span, covered, before).select(columns)


def with_fillers(
    current: Versions,
    series: Series,
    span: Interval,
    covered: Sequence[Interval],
    before: CandleBatch | None,
) -> pa.Table:
    """The bars of `span`, and in every other slot the last close, as SEGMENT_SCHEMA."""
    bars = current.rows
    whole = calendar(bars.batch, series.timeframe, span, covered, before)
    if len(whole) == len(bars):
        return to_table(current, series.extra)
    at = np.searchsorted(whole.ts, bars.batch.ts)
    fillers = np.ones(len(whole), dtype=np.bool_)
    fillers[at] = False
    ver = np.ones(len(whole), dtype=np.int32)
    ver[at] = current.ver
    known_at = np.zeros(len(whole), dtype=np.int64)
    known_at[at] = bars.known_at
    seen_at = np.zeros(len(whole), dtype=np.int64)
    seen_at[at] = bars.seen_at
    source = Labels.repeated([series.exchange_id], [len(whole)]).replaced(at, bars.source)
    rows = Sightings(whole, known_at, seen_at, source)
    return to_table(Versions(rows, ver), series.extra, fillers)


def _sealed_rows(
    snapshot: SeriesSnapshot, from_ms: int, to_ms: int, columns: Sequence[str]
) -> pa.Table | None:
    """The rows as they are in the sealed file, when no part can have changed them; else None."""
    if snapshot.sealed is None or snapshot.unmerged(from_ms, to_ms):
        return None
    span = snapshot.sealed.span
    step = snapshot.series.timeframe.ms
    inside = span is not None and span.from_ms <= from_ms and to_ms < span.to_ms + step
    if not inside and snapshot.unmerged():
        return None
    needed = [name for name in names_of(snapshot.series) if name in {"ts", "is_gap", *columns}]
    table = snapshot.sealed.file.between(from_ms, to_ms, needed)
    # A filler at the start carries an earlier close, which a part may have replaced.
    opens_with_gap = len(table) and table["is_gap"][0].as_py()
    if opens_with_gap and snapshot.unmerged(0, from_ms):
        return None
    return table.select(columns)
