"""The store's public interface."""

from __future__ import annotations

import functools
import itertools
import os
import secrets
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from collector.clock import Clock, SystemClock
from collector.market.candles import CANDLE_SCHEMA
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.symbol import checked_exchange_id
from collector.market.timeframe import MINUTE
from collector.metrics import BARS_WRITTEN
from collector.pipeline.resample import divides
from collector.store import compaction, derived, layout, ledger
from collector.store.catalogue import stored_series, stored_timeframes
from collector.store.copies import Copies
from collector.store.gathering import gather
from collector.store.page import Page
from collector.store.part import encode_group, encode_page
from collector.store.port import Corrupt, Swapped, Unavailable, Vanished
from collector.store.quarantine import quarantine
from collector.store.reading import SeriesReading
from collector.store.root import storage_at
from collector.store.rows import rows
from collector.store.scrub import scrub
from collector.store.segment import names_of
from collector.store.shelf import Shelf
from collector.store.snapshot import SeriesSnapshot
from collector.store.tail import Tail
from collector.store.whole import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from collector.market.answer import Rejected
    from collector.market.candles import CandleBatch
    from collector.market.timeframe import Timeframe
    from collector.store.compaction import Compacted
    from collector.store.coverage import Covered, SeriesCursor
    from collector.store.port import Storage
    from collector.store.sealed import SealedFooter

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
        """This store's own random word in the names of its parts."""
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
        """Makes one answer durable: its bars, the slots it covers and its rejected rows.

        `coverage` is what the answer covers: `Prepared.covered`. Request an empty range a second
        time before passing it: whatever is covered and holds no bar reads as `no_trade`. Returns
        the part's path; None when the answer covers nothing.
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

        Returns the part's path; None when they cover nothing.
        """
        proving = [self._stamped(page) for page in pages if page.covered]
        if not proving:
            return None
        hull = Interval(
            min(page.hull.from_ms for page in proving), max(page.hull.to_ms for page in proving)
        )
        folder = layout.groups_folder(proving[0].series.exchange_id)
        known_at = max(page.known_at for page in proving)
        data, rows = encode_group(proving, self.writer)
        path = layout.part_path(folder, hull, known_at, self._unique(), data)
        self.storage.write_atomic(path, data)
        self._shelf.put_written(path, rows, len(proving))
        _count_bars(proving)
        return path

    def quarantine(
        self, series: Series, rejected: Sequence[Rejected], *, fence: int, known_at: int
    ) -> str | None:
        """Keeps rows that are not bars, with their reasons; None when there are none."""
        return quarantine(self.storage, series, rejected, fence, known_at)

    def compact(self, series: Series) -> Compacted | None:
        """Merges all parts of the series into its sealed file; None when there were none.

        When there was nothing to merge, the existing files are checked instead, and the checksum
        and the copies are brought up to date with the sealed file. Raises Corrupt.
        """
        now_ms = self._clock.wall_ms()
        done = compaction.compact(self.storage, self._shelf, series, now_ms, self._copies)
        if done is not None:
            self._write_wholes(series, self._copies.timeframes)
            return done
        self._look(series, self._scrub)
        if not self._in_step(series, read=True):
            self.resample(series, self._copies.timeframes)
        return done

    def freeze(self, series: Series) -> Compacted | None:
        """Merges all parts and ends the calendar with the last bar; None when it ends there.

        For a market that is gone: coverage after its last bar does not mean a time without trades.
        """
        now_ms = self._clock.wall_ms()
        copies = self._copies
        return compaction.compact(self.storage, self._shelf, series, now_ms, copies, ending=True)

    def list_parts(self, exchange_id: str) -> None:
        """Lists the group parts of an exchange, for reading many of its series in a row.

        A method that takes `listed` then uses this listing.
        """
        self._shelf.index(checked_exchange_id(exchange_id)).refresh()

    def is_due(self, series: Series, *, listed: bool = False) -> bool:
        """Whether merging is worth rewriting the sealed file: much is new, or it is a day old."""
        now_ms = self._clock.wall_ms()
        if self._look(series, lambda seen: compaction.is_due(seen, now_ms), listed=listed):
            return True
        return not self._in_step(series)

    def resample(self, series: Series, timeframes: Sequence[Timeframe]) -> None:
        """Makes the files of longer bars again, from the sealed minutes and nothing else.

        Those of timeframes that are collected have the collected bars in them, too.
        """
        copies = replace(self._copies, timeframes=tuple(timeframes))
        now_ms = self._clock.wall_ms()
        self._look(
            series,
            lambda seen: compaction.copy_again(self.storage, self._shelf, seen, now_ms, copies),
        )
        self._write_wholes(series, timeframes)

    def _write_wholes(self, series: Series, timeframes: Sequence[Timeframe]) -> None:
        """Rewrites the files that the series contributes to: collected bars and made ones."""
        market = (series.exchange_id, series.symbol)
        for timeframe in timeframes:
            longer, minutes = Series(*market, timeframe), Series(*market, MINUTE)
            # Corrupt: a repair has to handle it. Swapped: another process has just written it.
            if series in (longer, minutes):
                with suppress(Corrupt, Swapped):
                    if self.holds(longer) and self.holds(minutes):
                        self.write_whole(longer)

    def write_whole(self, series: Series) -> None:
        """Rewrites the file of collected and made bars of a collected timeframe."""
        with self.reading(series) as reading:
            write_whole(self.storage, reading, self._clock.wall_ms())

    def refresh_tail(self, series: Series) -> bool:
        """Adds what came since the last compaction to the tail; False for no bars."""
        span = self.span(series)
        if span is None or not self._copies.tail_days:
            return False
        tail = Tail(series, self._copies.tail_days)
        table = self.rows(
            series,
            max(span.from_ms, span.to_ms - tail.span_ms),
            span.to_ms,
            columns=names_of(series),
        )
        tail.write(table)
        tail.put(self.storage, self._clock.wall_ms())
        return True

    def sweep(self, exchange_id: str) -> tuple[str, ...]:
        """Deletes group parts that every series in them has merged. Run it after compactions."""
        exchange = checked_exchange_id(exchange_id)
        return compaction.sweep(self.storage, self._shelf, exchange, self._clock.wall_ms())

    def gather(self, exchange_id: str) -> int:
        """Merges the small group parts of an exchange into one; returns how many there were.

        Parts that an earlier call merged are deleted once no reader can need them.
        """
        exchange = checked_exchange_id(exchange_id)

        @functools.cache
        def merged(key: tuple[str, str]) -> frozenset[str]:
            return compaction.merged_by(self._shelf, Series.of(exchange, *key))

        now_ms, count = self._clock.wall_ms(), 0
        while taken := gather(self.storage, self._shelf, exchange, merged, self._unique, now_ms):
            count += len(taken)
        return count

    def coverage(self, series: Series) -> tuple[Covered, ...]:
        """Which ranges are covered, with the number of bars in each; from the files alone."""
        return self._look(series, ledger.coverage_of)

    def covered(self, series: Series, *, listed: bool = False) -> tuple[Interval, ...]:
        """The same without counting bars, which is quick."""
        return self._look(series, lambda snapshot: snapshot.covered(), listed=listed)

    def cursor(self, series: Series) -> SeriesCursor | None:
        """How far work on the series got; None when no answer was ever stored."""
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
        """The calendar of `[from_ms, to_ms)`, in memory. `columns` may be any of its files'."""
        return self._look(series, lambda seen: rows(seen, from_ms, to_ms, as_of, columns))

    def reading(self, series: Series) -> SeriesReading:
        """All that can be read of the series, including bars made from shorter ones.

        As of one moment, until it is closed.
        """
        frame = series.timeframe
        beside = stored_timeframes(self.storage, self._shelf, series.exchange_id, series.symbol)
        shorter = [each for each in beside if each < frame and divides(each, frame)]
        return SeriesReading(
            lambda each, listed: SeriesSnapshot(self.storage, self._shelf, each, listed=listed),
            series,
            [Series(series.exchange_id, series.symbol, each) for each in shorter],
        )

    def span(self, series: Series, *, as_of: int | None = None) -> Interval | None:
        """From the first bar to the calendar's end; None when there are no bars."""
        return self._look(series, lambda snapshot: _span(snapshot, as_of))

    def holds(self, series: Series, *, listed: bool = False) -> bool:
        """Whether anything from an exchange is stored for the series."""
        return self._look(
            series, lambda s: s.sealed is not None or bool(s.unmerged()), listed=listed
        )

    def series(self, exchange_id: str | None = None) -> tuple[Series, ...]:
        """Every series with a file or a part, in a fixed order."""
        return stored_series(self.storage, self._shelf, exchange_id)

    def _scrub(self, snapshot: SeriesSnapshot) -> None:
        scrub(self.storage, self._shelf, snapshot)

    def _in_step(self, series: Series, *, read: bool = False) -> bool:
        """Whether every copy was made of the sealed file as it is now; and is whole, if `read`."""
        if series.timeframe != MINUTE:
            return True
        source = self._look(series, _footer, listed=True)
        if source is None:
            return True
        for timeframe in self._copies.timeframes:
            longer = Series(series.exchange_id, series.symbol, timeframe)
            # Corrupt: these are bars from an exchange, so a repair has to handle it.
            with suppress(Corrupt):
                if self._look(longer, lambda s: derived.is_behind(s, source), listed=True):
                    return False
                if read and not self._look(longer, self._is_whole_copy, listed=True):
                    return False
        return True

    def _is_whole_copy(self, snapshot: SeriesSnapshot) -> bool:
        if snapshot.derived is not None:
            try:
                self._scrub(snapshot)
            except Corrupt:
                return False
        return True

    def _look(
        self, series: Series, read: Callable[[SeriesSnapshot], T], *, listed: bool = False
    ) -> T:
        for attempt in range(_LOOKS):
            known = listed and not attempt
            with SeriesSnapshot(self.storage, self._shelf, series, listed=known) as snapshot:
                try:
                    return read(snapshot)
                except Vanished:
                    continue
        raise Unavailable(f"{series}: parts keep vanishing")

    def _stamped(self, page: Page) -> Page:
        """The page, with a time that this store has not used for the series before.

        Two answers in one millisecond keep the order in which they were appended: the later one
        gets the next millisecond.
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


def _footer(snapshot: SeriesSnapshot) -> SealedFooter | None:
    return None if snapshot.sealed is None else snapshot.sealed.footer


def _span(snapshot: SeriesSnapshot, as_of: int | None) -> Interval | None:
    first, end = snapshot.first_ts(), snapshot.end_ms(as_of)
    return Interval(first, end) if first is not None and first < end else None


def _count_bars(pages: Sequence[Page]) -> None:
    for page in pages:
        if len(page.batch):
            labels = (page.series.exchange_id, page.series.timeframe.name)
            BARS_WRITTEN.labels(*labels).inc(len(page.batch))
