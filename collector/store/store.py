"""The store's front door."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import secrets
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from collector.clock import Clock, SystemClock
from collector.errors import StoreError
from collector.market.candles import CANDLE_SCHEMA
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.symbol import checked_exchange_id, name_to_symbol
from collector.metrics import BARS_WRITTEN
from collector.store import compaction, derived, layout, ledger
from collector.store.copies import MINUTE, Copies
from collector.store.gathering import gather
from collector.store.page import Page
from collector.store.part import encode_group, encode_page
from collector.store.port import Corrupt, Vanished
from collector.store.quarantine import quarantine
from collector.store.root import storage_at
from collector.store.rows import rows
from collector.store.segment import SEGMENT_SCHEMA
from collector.store.shelf import Shelf
from collector.store.snapshot import Snapshot
from collector.store.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from collector.market.candles import CandleBatch
    from collector.market.timeframe import Timeframe
    from collector.pipeline.normalize import Rejected
    from collector.store.compaction import Compacted
    from collector.store.coverage import Covered, Cursor
    from collector.store.port import Storage

T = TypeVar("T")

_LOOKS = 50
"""Snapshots to try before giving up: each failure means that a compaction got further."""


class Store:
    """Bars, durable. Every method waits for the disk: call it in a thread. Any thread may.

    `root` is a folder, an `s3://bucket/prefix`, or a storage.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Storage,
        *,
        clock: Clock | None = None,
        copies: Copies | None = None,
    ) -> None:
        self.storage: Storage = storage_at(root) if isinstance(root, str | os.PathLike) else root
        self.writer = secrets.token_hex(8)
        """This store's own word in the names of its parts."""
        self._clock = clock or SystemClock()
        self._copies = copies or Copies()
        self._shelf = Shelf(self.storage)
        self._count = itertools.count()
        self._stamps: dict[Series, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def append_page(
        self,
        series: Series,
        batch: CandleBatch,
        coverage: Interval | Iterable[Interval],
        *,
        fence: int,
        known_at: int,
        rejected: Sequence[Rejected] = (),
        source: str | None = None,
    ) -> str | None:
        """Makes one answer durable: its bars, the slots it settles and the rows it lost.

        `coverage` is what the answer proves: `Prepared.covered`. Ask a second time before an empty
        answer is believed: whatever is covered and holds no bar reads as `no_trade`.
        Returns the part's path; None when the answer settled nothing.
        """
        page = Page.of(series, batch, coverage, fence=fence, known_at=known_at, source=source)
        quarantine(self.storage, series, rejected, fence, known_at)
        if not page.covered:
            return None
        page = self._stamped(page)
        folder, data = layout.pages_folder(series), encode_page(page, self.writer)
        path = layout.part_path(folder, page.hull, fence, self._unique(), data)
        self.storage.write_atomic(path, data)
        _count_bars([page])
        return path

    def append_group(self, pages: Sequence[Page]) -> str | None:
        """Makes answers about many series of one exchange durable with one write.

        Returns the part's path; None when none of them settled anything.
        """
        proving = [self._stamped(page) for page in pages if page.covered]
        if not proving:
            return None
        hull = Interval(
            min(page.hull.from_ms for page in proving), max(page.hull.to_ms for page in proving)
        )
        folder = layout.groups_folder(proving[0].series.exchange_id)
        known_at = max(page.known_at for page in proving)
        data = encode_group(proving, self.writer)
        path = layout.part_path(folder, hull, known_at, self._unique(), data)
        self.storage.write_atomic(path, data)
        _count_bars(proving)
        return path

    def quarantine(
        self, series: Series, rejected: Sequence[Rejected], *, fence: int, known_at: int
    ) -> str | None:
        """Keeps rows that are not bars, with their reasons; None when there are none."""
        return quarantine(self.storage, series, rejected, fence, known_at)

    def compact(self, series: Series) -> Compacted | None:
        """Merges all parts of the series into its sealed file; None when there were none.

        Its copies are brought in step with it, also when there was nothing to merge.
        """
        now_ms = self._clock.wall_ms()
        done = compaction.compact(self.storage, self._shelf, series, now_ms, self._copies)
        if done is None and not self._in_step(series):
            self.resample(series, self._copies.timeframes)
        return done

    def freeze(self, series: Series) -> Compacted | None:
        """Merges all parts and ends the calendar with the last bar; None when it ends there.

        For a market that is gone: what was asked for behind its last bar was not a quiet time.
        """
        now_ms = self._clock.wall_ms()
        copies = self._copies
        return compaction.compact(self.storage, self._shelf, series, now_ms, copies, ending=True)

    def is_due(self, series: Series) -> bool:
        """Whether merging is worth rewriting the sealed file: much is new, or it is a day old."""
        now_ms = self._clock.wall_ms()
        if self._look(series, lambda seen: compaction.is_due(seen, now_ms)):
            return True
        return not self._in_step(series)

    def resample(self, series: Series, timeframes: Sequence[Timeframe]) -> None:
        """Makes the files of longer bars again, from the sealed minutes and nothing else."""
        copies = replace(self._copies, timeframes=tuple(timeframes))
        now_ms = self._clock.wall_ms()
        self._look(
            series,
            lambda seen: compaction.copy_again(self.storage, self._shelf, seen, now_ms, copies),
        )

    def refresh_tail(self, series: Series) -> bool:
        """Puts what came since the last compaction into the tail, too; False for no bars."""
        span = self.span(series)
        if span is None or not self._copies.tail_days:
            return False
        tail = Tail(series, self._copies.tail_days)
        table = self.rows(
            series,
            max(span.from_ms, span.to_ms - tail.span_ms),
            span.to_ms,
            columns=SEGMENT_SCHEMA.names,
        )
        tail.write(table)
        tail.put(self.storage, self._clock.wall_ms())
        return True

    def sweep(self, exchange_id: str) -> tuple[str, ...]:
        """Deletes group parts that every series in them has merged. Run it after compactions."""
        exchange = checked_exchange_id(exchange_id)
        return compaction.sweep(self.storage, self._shelf, exchange)

    def gather(self, exchange_id: str) -> int:
        """Puts the small group parts of an exchange into one; returns how many there were."""
        exchange = checked_exchange_id(exchange_id)

        @functools.cache
        def merged(key: tuple[str, str]) -> frozenset[str]:
            return compaction.merged_by(self.storage, Series.of(exchange, *key))

        return len(gather(self.storage, self._shelf, exchange, merged, self._unique))

    def coverage(self, series: Series) -> tuple[Covered, ...]:
        """Which stretches are settled, with the number of bars in each; from the files alone."""
        return self._look(series, ledger.coverage_of)

    def covered(self, series: Series) -> tuple[Interval, ...]:
        """The same without counting bars, which is quick."""
        return self._look(series, lambda snapshot: snapshot.covered())

    def cursor(self, series: Series) -> Cursor | None:
        """How far work on the series got; None when nothing was ever answered."""
        return self._look(series, ledger.cursor_of)

    def rows(
        self,
        series: Series,
        from_ms: int,
        to_ms: int,
        *,
        as_of: int | None = None,
        columns: Sequence[str] = CANDLE_SCHEMA.names,
    ) -> pa.Table:
        """The calendar of `[from_ms, to_ms)`, in memory. `columns` may be any of SEGMENT_SCHEMA."""
        return self._look(series, lambda seen: rows(seen, from_ms, to_ms, as_of, columns))

    def span(self, series: Series, *, as_of: int | None = None) -> Interval | None:
        """From the first bar to the calendar's end; None when there are no bars."""
        return self._look(series, lambda snapshot: _span(snapshot, as_of))

    def holds(self, series: Series) -> bool:
        """Whether anything an exchange told is stored for the series."""
        return self._look(series, lambda s: s.sealed is not None or bool(s.unmerged()))

    def derived_until(self, longer: Series, minutes: Series) -> int:
        """The moment up to which the file of longer bars tells all that the minutes tell."""
        return self._look(
            minutes,
            lambda seen: self._look(longer, lambda file: derived.told_until(file, seen)),
        )

    def derived_rows(
        self, longer: Series, from_ms: int, to_ms: int, columns: Sequence[str] = CANDLE_SCHEMA.names
    ) -> pa.Table:
        """What the file of longer bars says about `[from_ms, to_ms)`; empty when there is none."""
        return self._look(longer, lambda seen: derived.rows(seen, from_ms, to_ms, columns))

    def series(self, exchange_id: str | None = None) -> tuple[Series, ...]:
        """Every series with a file or a part, in a fixed order."""
        exchanges = self.storage.folders("") if exchange_id is None else [exchange_id]
        found: set[Series] = set()
        for exchange in exchanges:
            for symbol, timeframe in self._names(exchange):
                # Folders that are not ours, whatever they are doing there, are no series.
                with contextlib.suppress(ValueError):
                    found.add(Series.of(exchange, symbol, timeframe))
        return tuple(sorted(found, key=lambda s: (s.exchange_id, s.symbol, s.timeframe)))

    def _names(self, exchange_id: str) -> Iterator[tuple[str, str]]:
        for folder in self.storage.folders(exchange_id):
            try:
                symbol = name_to_symbol(folder)
            except ValueError:
                continue
            inside = f"{exchange_id}/{folder}"
            sealed = map(layout.parse_sealed, self.storage.names(inside))
            yield from ((symbol, tf) for tf in sealed if tf is not None)
            for tf in self.storage.folders(f"{inside}/parts"):
                if self.storage.names(f"{inside}/parts/{tf}"):
                    yield symbol, tf
        groups = layout.groups_folder(exchange_id)
        for name in self.storage.names(groups):
            try:
                yield from self._shelf.part(f"{groups}/{name}").series()
            except (Vanished, Corrupt):
                continue

    def _in_step(self, series: Series) -> bool:
        """Whether every copy was made of the sealed file as it is now."""
        if series.timeframe != MINUTE:
            return True
        with Snapshot(self.storage, self._shelf, series) as seen:
            if seen.sealed is None:
                return True
            made_of = seen.sealed.footer.data_hash
        for timeframe in self._copies.timeframes:
            longer = Series(series.exchange_id, series.symbol, timeframe)
            with Snapshot(self.storage, self._shelf, longer) as seen:
                is_made = seen.sealed is None and not seen.unmerged()
                if is_made and (seen.derived is None or seen.derived.footer.made_of != made_of):
                    return False
        return True

    def _look(self, series: Series, read: Callable[[Snapshot], T]) -> T:
        for _ in range(_LOOKS):
            with Snapshot(self.storage, self._shelf, series) as snapshot:
                try:
                    return read(snapshot)
                except Vanished:
                    continue
        raise StoreError(f"{series}: parts keep vanishing")

    def _stamped(self, page: Page) -> Page:
        """The page, at a moment this store has not given to the series before.

        Two answers of one millisecond keep the order in which they were appended: the later one
        moves on by a millisecond.
        """
        with self._lock:
            asked, given = self._stamps.get(page.series, (0, -1))
            if asked <= page.known_at <= given:
                given += 1
            else:
                asked = given = page.known_at
            self._stamps[page.series] = (asked, given)
        return page if given == page.known_at else replace(page, known_at=given)

    def _unique(self) -> str:
        return f"{self.writer}{next(self._count):06x}"


def _span(snapshot: Snapshot, as_of: int | None) -> Interval | None:
    first, end = snapshot.first_ts(), snapshot.end_ms(as_of)
    return Interval(first, end) if first is not None and first < end else None


def _count_bars(pages: Sequence[Page]) -> None:
    for page in pages:
        if len(page.batch):
            labels = (page.series.exchange_id, page.series.timeframe.name)
            BARS_WRITTEN.labels(*labels).inc(len(page.batch))
