"""A stretch of a series as a reader sees it: every slot of the calendar, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.interval import Interval, runs, subtract
from collector.pipeline.calendar import calendar
from collector.pipeline.fold import Sightings, Versions
from collector.store.segment import SEGMENT_SCHEMA, to_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.store.snapshot import Snapshot


def rows(
    snapshot: Snapshot,
    from_ms: int,
    to_ms: int,
    as_of: int | None = None,
    columns: Sequence[str] = SEGMENT_SCHEMA.names,
) -> pa.Table:
    """The calendar of `[from_ms, to_ms)`, bars and the fillers between them.

    `columns` are those of SEGMENT_SCHEMA that are wanted.
    """
    if as_of is None and (ready := _sealed_rows(snapshot, from_ms, to_ms, columns)) is not None:
        return ready
    timeframe = snapshot.series.timeframe
    start = from_ms if timeframe.aligned(from_ms) else timeframe.next_open(from_ms)
    current = snapshot.history(start, to_ms, as_of).current
    # After the history, so that a part that turned out to be damaged proves nothing.
    end = min(to_ms, snapshot.end_ms(as_of))
    if start >= end:
        return SEGMENT_SCHEMA.empty_table().select(columns)
    opens = len(current) and current.rows.batch.ts[0] == start
    before = None if opens else snapshot.last_before(start, as_of)
    covered = snapshot.covered(start, end)
    if as_of is not None:
        # A slot whose bar came later was not settled then.
        later = snapshot.history(start, end).current.rows.batch.ts
        unknown = later[~np.isin(later, current.rows.batch.ts, assume_unique=True)]
        covered = subtract(covered, runs(unknown, timeframe.ms))
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
        return to_table(current)
    at = np.searchsorted(whole.ts, bars.batch.ts)
    fillers = np.ones(len(whole), dtype=np.bool_)
    fillers[at] = False
    ver = np.ones(len(whole), dtype=np.int32)
    ver[at] = current.ver
    known_at = np.zeros(len(whole), dtype=np.int64)
    known_at[at] = bars.known_at
    seen_at = np.zeros(len(whole), dtype=np.int64)
    seen_at[at] = bars.seen_at
    source = np.full(len(whole), series.exchange_id, dtype=np.object_)
    source[at] = bars.source
    return to_table(Versions(Sightings(whole, known_at, seen_at, source), ver), fillers)


def _sealed_rows(
    snapshot: Snapshot, from_ms: int, to_ms: int, columns: Sequence[str]
) -> pa.Table | None:
    """The rows as they lie in the sealed file, when no part can have changed them; else None."""
    if snapshot.sealed is None or snapshot.unmerged(from_ms, to_ms):
        return None
    span = snapshot.sealed.span()
    step = snapshot.series.timeframe.ms
    inside = span is not None and span.from_ms <= from_ms and to_ms < span.to_ms + step
    if not inside and snapshot.unmerged():
        return None
    needed = [name for name in SEGMENT_SCHEMA.names if name in {"ts", "is_gap", *columns}]
    table = snapshot.sealed.between(from_ms, to_ms, needed)
    # A filler at the start carries a close from before, where a part may know better.
    opens_with_gap = len(table) and table["is_gap"][0].as_py()
    if opens_with_gap and snapshot.unmerged(0, from_ms):
        return None
    return table.select(columns)
