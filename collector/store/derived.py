"""Files of longer bars, made of the minutes while they pass through a compaction.

`5m.parquet` beside `1m.parquet` is a copy of what the minutes say, ready for tools that read files
and for long reads. It names the very file it was made of (`made_of`, its data_hash): when a crash
came between the two, or parts came since, readers make the bars in question from the minutes
instead, so that a longer bar never tells less than its minutes. A timeframe that is collected from
the exchange itself is left alone.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.pipeline.ladder import Graded, Ladder
from collector.store import layout
from collector.store.coverage import Covered, cursor
from collector.store.port import Swapped
from collector.store.sealed import SealedFooter
from collector.store.segment import ROWS_PER_GROUP, SEGMENT_SCHEMA, writing
from collector.store.signature import DataHash, build_signature
from collector.store.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from collector.market.timeframe import Timeframe
    from collector.store.port import Draft, Storage
    from collector.store.shelf import Shelf


def told_until(longer: Snapshot, minutes: Snapshot) -> int:
    """The moment up to which the file of longer bars tells all that the minutes tell; 0: never."""
    if longer.derived is None or minutes.sealed is None:
        return 0
    footer = longer.derived.footer
    if footer.made_of != minutes.sealed.footer.data_hash or not footer.coverage:
        return 0
    pages = (page for pages in minutes.unmerged().values() for page in pages)
    # A bar that came later may change every filler behind it, which carry its close.
    changed = min((page.covered[0].from_ms for page in pages), default=footer.coverage[-1].to_ms)
    return min(footer.coverage[-1].to_ms, longer.series.timeframe.floor(changed))


def rows(longer: Snapshot, from_ms: int, to_ms: int, columns: Sequence[str]) -> pa.Table:
    """The file's own rows of `[from_ms, to_ms)`; none when there is no such file."""
    if longer.derived is None:
        return SEGMENT_SCHEMA.empty_table().select(columns)
    needed = [name for name in SEGMENT_SCHEMA.names if name in {"ts", *columns}]
    return longer.derived.between(from_ms, to_ms, needed).select(columns)


class DerivedWriters:
    """The longer timeframes of one series, being written beside its minutes."""

    def __init__(
        self,
        storage: Storage,
        shelf: Shelf,
        series: Series,
        targets: Sequence[Timeframe],
        stack: ExitStack,
    ) -> None:
        self._ladder = Ladder(series.timeframe, targets)
        self._writers = {}
        for target in targets:
            longer = Series(series.exchange_id, series.symbol, target)
            with Snapshot(storage, shelf, longer) as seen:
                if seen.sealed is None and not seen.unmerged():
                    self._writers[target] = _Writer(storage, longer, seen.sealed_stamp, stack)

    def write(self, table: pa.Table) -> None:
        """The next rows of the minutes' calendar, as SEGMENT_SCHEMA."""
        if not self._writers:
            return
        minutes = Graded(CandleBatch.from_arrow(table), table["ver"].to_numpy())
        for target, made in self._ladder.climb(minutes).items():
            if target in self._writers and len(made.batch):
                self._writers[target].write(made)

    def finish(self, now_ms: int, source: SealedFooter, timeframe: Timeframe) -> None:
        """No more rows. The files are durable, and not in place yet."""
        for writer in self._writers.values():
            writer.finish(now_ms, source, timeframe)

    def commit(self) -> None:
        """Puts them in place, each by itself: one that is not is no worse than one that is old."""
        for writer in self._writers.values():
            writer.commit()


class _Writer:
    """One file. Its rows wait until they fill a row group: a piece of minutes makes few of them."""

    def __init__(
        self, storage: Storage, series: Series, expected: str | None, stack: ExitStack
    ) -> None:
        self._series = series
        self._expected = expected
        self._draft: Draft = stack.enter_context(storage.draft(layout.sealed_path(series)))
        self._out = stack.enter_context(writing(self._draft.sink, SEGMENT_SCHEMA))
        self._hash = DataHash()
        self._waiting: list[pa.Table] = []
        self._rows = self._bars = 0
        self._first: int | None = None
        self._end = 0
        self._last_bar: int | None = None

    def write(self, made: Graded) -> None:
        batch = made.batch
        bars = batch.ts[~batch.filler]
        if len(bars):
            self._bars += len(bars)
            self._last_bar = int(bars[-1])
        self._first = int(batch.ts[0]) if self._first is None else self._first
        self._end = int(batch.ts[-1]) + self._series.timeframe.ms
        # Nobody showed us these bars at any moment.
        unseen = pa.nulls(len(batch), pa.int64())
        table = batch.to_arrow(self._series.exchange_id, made.ver)
        columns = [*table.columns, unseen, unseen]
        self._waiting.append(pa.Table.from_arrays(columns, schema=SEGMENT_SCHEMA))
        self._rows += len(batch)
        if self._rows >= ROWS_PER_GROUP:
            self._put()

    def finish(self, now_ms: int, source: SealedFooter, timeframe: Timeframe) -> None:
        self._put()
        ledger = () if self._first is None else (Covered(self._first, self._end, self._bars),)
        footer = SealedFooter(
            data_hash=self._hash.hexdigest(),
            build_signature=build_signature(),
            source=self._series.exchange_id,
            generated_at=datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(),
            coverage=ledger,
            cursor=cursor(ledger, self._last_bar),
            merged=frozenset(),
            derived_from=timeframe.name,
            made_of=source.data_hash,
        )
        self._out.add_key_value_metadata(footer.metadata())
        self._out.close()
        self._draft.finish()

    def commit(self) -> None:
        series = self._series
        checksum = f"{self._draft.sha256()}  {series.timeframe}.parquet\n".encode()
        # Swapped: a newer file is there, or the timeframe is being collected by now.
        with contextlib.suppress(Swapped):
            self._draft.commit(self._expected, (layout.checksum_path(series), checksum))

    def _put(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            self._out.write_table(table, row_group_size=ROWS_PER_GROUP)
            self._hash.update(table)
            self._draft.checkpoint()
            self._waiting, self._rows = [], 0
