"""Files of longer bars, made of the minutes while they pass through a compaction.

`5m.parquet` beside `1m.parquet` is made from the minutes, for tools that read files and for long
reads. It names the very file it was made of (`made_of`, with its data_hash): when a crash happened
between the two, or parts came since, readers make those bars from the minutes instead, so that a
longer bar never lacks a minute.  A timeframe that is collected from the exchange itself is left
alone.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.pipeline.ladder import Graded, Ladder
from collector.store import footer as footers
from collector.store import layout
from collector.store.checksum import checksum
from collector.store.coverage import Covered, cursor
from collector.store.port import Corrupt, Swapped
from collector.store.sealed import SealedFooter
from collector.store.segment import (
    ROWS_PER_GROUP,
    extra_in,
    names_of,
    schema_of,
    with_moments,
    writing,
)
from collector.store.signature import DataHash, build_signature
from collector.store.snapshot import SeriesSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from collector.market.timeframe import Timeframe
    from collector.store.port import Draft, Storage
    from collector.store.shelf import Shelf


_RULES = "2"
"""The version of the rules by which bars are made. Files of other versions are made again. 2: a bar
with a gap minute in it is `partial`.
"""


def made_of(minutes: SealedFooter) -> str:
    """What the footer of a file of longer bars records about its source file and the rules."""
    calendar = f":{minutes.calendar}" if minutes.calendar else ""
    return f"{_RULES}:{minutes.data_hash}{calendar}"


def agrees_until(longer: SeriesSnapshot, minutes: SeriesSnapshot) -> int:
    """The time up to which the file of longer bars agrees with the minutes; 0: never."""
    if longer.derived is None or minutes.sealed is None:
        return 0
    footer = longer.derived.footer
    if footer.made_of != made_of(minutes.sealed.footer) or not footer.coverage:
        return 0
    pages = (page for pages in minutes.unmerged().values() for page in pages)
    # A bar that came later may change every filler after it, because those carry its close.
    changed = min((page.covered[0].from_ms for page in pages), default=footer.coverage[-1].to_ms)
    return min(footer.coverage[-1].to_ms, longer.series.timeframe.floor(changed))


def is_behind(longer: SeriesSnapshot, source: SealedFooter) -> bool:
    """Whether there should be a file of longer bars made of this source, and there is not."""
    is_collected = longer.sealed is not None or bool(longer.unmerged())
    return not is_collected and (
        longer.derived is None or longer.derived.footer.made_of != made_of(source)
    )


def rows(longer: SeriesSnapshot, from_ms: int, to_ms: int, columns: Sequence[str]) -> pa.Table:
    """The file's own rows of `[from_ms, to_ms)`; none when there is no such file."""
    if longer.derived is None:
        return schema_of(longer.series).empty_table().select(columns)
    needed = [name for name in names_of(longer.series) if name in {"ts", *columns}]
    return longer.derived.file.between(from_ms, to_ms, needed).select(columns)


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
        own = [target.at(series.exchange_id, series.symbol) for target in targets]
        self._ladder = Ladder(series.timeframe, own)
        self._writers = {}
        for target in own:
            longer = Series(series.exchange_id, series.symbol, target)
            # Corrupt: these are bars from an exchange, so a repair has to handle it.
            with contextlib.suppress(Corrupt), SeriesSnapshot(storage, shelf, longer) as seen:
                if seen.sealed is None and not seen.unmerged():
                    self._writers[target] = _Writer(storage, longer, seen.sealed_stamp, stack)

    def write(self, table: pa.Table) -> None:
        """The next rows of the minutes' calendar, as SEGMENT_SCHEMA."""
        if not self._writers:
            return
        batch = CandleBatch.from_arrow(table, extra_in(table.schema))
        minutes = Graded(batch, table["ver"].to_numpy())
        for target, made in self._ladder.climb(minutes).items():
            if target in self._writers and len(made.batch):
                self._writers[target].write(made)

    def finish(self, now_ms: int, source: SealedFooter, timeframe: Timeframe) -> None:
        """No more rows. The files are durable, and not in place yet."""
        for writer in self._writers.values():
            writer.finish(now_ms, source, timeframe)

    def commit(self) -> None:
        """Puts them in place one by one: a missing file is no worse than an old one."""
        for writer in self._writers.values():
            writer.commit()


class _Writer:
    """One file. Its rows wait until they fill a row group, because minutes make few of them."""

    def __init__(
        self, storage: Storage, series: Series, expected: str | None, stack: ExitStack
    ) -> None:
        self._series = series
        self._expected = expected
        self._draft: Draft = stack.enter_context(storage.draft(layout.sealed_path(series)))
        self._out = stack.enter_context(writing(self._draft.sink, schema_of(series)))
        self._hash = DataHash(series.extra)
        self._waiting: list[pa.Table] = []
        self._rows = self._bars = self._count = 0
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
        self._end = self._series.timeframe.end(int(batch.ts[-1]))
        # These bars were never in an answer.
        unseen = pa.nulls(len(batch), pa.int64())
        table = batch.to_arrow(self._series.exchange_id, made.ver, self._series.extra)
        self._waiting.append(with_moments(table, [unseen, unseen]))
        self._rows += len(batch)
        self._count += len(batch)
        if self._rows >= ROWS_PER_GROUP:
            self._put()

    def finish(self, now_ms: int, source: SealedFooter, timeframe: Timeframe) -> None:
        self._put()
        self._derived_from = timeframe.name
        ledger = () if self._first is None else (Covered(self._first, self._end, self._bars),)
        footer = SealedFooter(
            data_hash=self._hash.hexdigest(),
            build_signature=build_signature(),
            source=self._series.exchange_id,
            generated_at=datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(),
            coverage=ledger,
            cursor=cursor(ledger, self._last_bar),
            merged=frozenset(),
            derived_from=self._derived_from,
            made_of=made_of(source),
            calendar=self._series.timeframe.calendar_id,
        )
        footers.close(self._out, self._draft.sink, footer.metadata(self._series, self._count))
        self._draft.finish()

    def commit(self) -> None:
        beside = checksum(self._series, self._draft.sha256(), self._derived_from)
        # Swapped: a newer file exists, or the timeframe is being collected by now.
        with contextlib.suppress(Swapped):
            self._draft.commit(self._expected, beside)

    def _put(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            self._out.write_table(table, row_group_size=ROWS_PER_GROUP)
            self._hash.update(table)
            self._draft.checkpoint()
            self._waiting, self._rows = [], 0
