"""A snapshot of everything a series has: its sealed file, its older versions and its parts.

Parts are listed before the sealed file is opened. A part that was merged and deleted before the
listing is inside the sealed file that is opened after it; one that is deleted later is missing when
it is opened (Vanished), and the caller takes a new snapshot. So no order of events hides a row, and
since merging a row twice changes nothing, none is seen twice.

Rows that move from one part to another (gathering.py) need more: a listing is not atomic, and may
be too late for the old part and too early for the new one. So the old one stays for a while.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from collector import logs
from collector.market.interval import Interval, union
from collector.pipeline.fold import BarVersions, Sightings, Versions, fold
from collector.pipeline.overlay import needs_older, overlay, without_orphans
from collector.store import layout
from collector.store.checksum import is_of_a_copy
from collector.store.footer import whose
from collector.store.port import Corrupt, Vanished
from collector.store.sealed import Sealed, SealedView
from collector.store.segment import ROWS_PER_GROUP, Segment, from_table, names_of, schema_of

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.store.part import PageEntry
    from collector.store.port import Storage
    from collector.store.shelf import Shelf

log = logs.get("collector.store")

_ALWAYS = (0, 2**62)


class SeriesSnapshot:
    """A series as it was at one moment. A context manager; it holds files open.

    With `listed` the group parts are those of the last listing, for reading many series in a row.
    """

    def __init__(
        self, storage: Storage, shelf: Shelf, series: Series, *, listed: bool = False
    ) -> None:
        self.series = series
        self.damaged: dict[str, Corrupt] = {}
        """Parts that could not be read. They count as if they were not there."""
        self._storage = storage
        self._shelf = shelf
        self._pages_in: dict[str, tuple[PageEntry, ...]] = {}
        self.pages = _listed(storage, layout.pages_folder(series))
        index = shelf.index(series.exchange_id)
        if not listed:
            index.refresh()
        self.groups = index.view((series.symbol, series.timeframe.name))
        self.sealed: SealedView | None = None
        self.derived: SealedView | None = None
        """The file in the sealed one's place, when it holds only bars made of minutes."""
        self.sealed_stamp: str | None = None
        self.versions_stamp: str | None = None
        self._older: Segment | None = None
        self._open_sealed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for file in (self.sealed, self.derived, self._older):
            if file is not None:
                file.close()

    @cached_property
    def versions(self) -> Segment | None:
        """The file of older versions, opened when it is needed."""
        path = layout.versions_path(self.series)
        self.versions_stamp = self._storage.stamp(path)
        if self.versions_stamp is not None:
            stamp, expected = self.versions_stamp, whose(self.series)
            self._older = self._shelf.opened(path, stamp, Segment, expected)
        return self._older

    def unmerged(
        self, from_ms: int = _ALWAYS[0], to_ms: int = _ALWAYS[1]
    ) -> dict[str, tuple[PageEntry, ...]]:
        """By part, the pages of this series that touch `[from_ms, to_ms)` and are not sealed."""
        parts = {
            part.path: self._entries(part.path)
            for part in self.pages
            if part.touches(from_ms, to_ms)
        }
        merged = self.sealed.footer.merged if self.sealed is not None else frozenset()
        for held in self.groups.near(from_ms, to_ms):
            if held.part.name not in merged and held.part.path not in self.damaged:
                parts[held.part.path] = held.pages
        self.damaged.update(self.groups.damaged(from_ms, to_ms))
        near = ((path, _touching(pages, from_ms, to_ms)) for path, pages in parts.items())
        return {path: pages for path, pages in near if pages}

    def current(self, from_ms: int, to_ms: int, as_of: int | None = None) -> Versions:
        """The bars of `[from_ms, to_ms)` as they are now, or were known then."""
        if as_of is not None:
            return self.history(from_ms, to_ms, as_of).current
        sealed = self._versions(self._sealed_file, from_ms, to_ms)
        fresh = _inside(from_table(self._part_rows(from_ms, to_ms)).rows, from_ms, to_ms)
        if not len(fresh):
            return sealed  # It was folded when it was sealed.
        asked_for = self.versions if needs_older(sealed, fresh) else None
        return overlay(sealed, self._versions(asked_for, from_ms, to_ms), fresh)

    def history(self, from_ms: int, to_ms: int, as_of: int | None = None) -> BarVersions:
        """Every version of every bar in `[from_ms, to_ms)`."""
        sealed = self._versions(self._sealed_file, from_ms, to_ms)
        older = self._versions(self.versions, from_ms, to_ms)
        fresh = from_table(self._part_rows(from_ms, to_ms)).rows
        if as_of is None and not len(fresh):
            return BarVersions(current=sealed, older=older)  # It was folded when it was sealed.
        sightings = Sightings.concat([sealed.rows, older.rows, fresh])
        folded = fold(_inside(sightings, from_ms, to_ms), as_of)
        if as_of is not None or not len(older):
            return folded  # Only older versions can outlive their bar.
        return without_orphans(folded, np.concatenate([sealed.rows.batch.ts, fresh.batch.ts]))

    def covered(self, from_ms: int = _ALWAYS[0], to_ms: int = _ALWAYS[1]) -> tuple[Interval, ...]:
        """The ledger, as far as it touches `[from_ms, to_ms)`: ascending and disjoint."""
        sealed = self.sealed.footer.coverage if self.sealed is not None else ()
        parts = self.unmerged(from_ms, to_ms).values()
        fresh = (c for entries in parts for entry in entries for c in entry.covered)
        near = (each for each in (*sealed, *fresh) if each.from_ms < to_ms and from_ms < each.to_ms)
        return union(each.interval for each in near)

    def part_times(self) -> NDArray[np.int64]:
        """The opening times of all bars in parts, unordered, possibly repeated."""
        times: NDArray[np.int64] = self._part_rows(*_ALWAYS)["ts"].to_numpy()
        return times

    def last_before(self, ts_ms: int, as_of: int | None = None) -> CandleBatch | None:
        """The last bar before `ts_ms`, as a batch of one; None when there is none."""
        starts = [self.groups.earliest_ms(), *(part.hull.from_ms for part in self.pages)]
        if self.sealed is not None and self.sealed.span is not None:
            starts.append(self.sealed.span.from_ms)
        first = min((start for start in starts if start is not None), default=ts_ms)
        step = ROWS_PER_GROUP * self.series.timeframe.ms
        end = ts_ms
        while end > first:
            bars = self.current(end - step, end, as_of).rows.batch
            if len(bars):
                return bars.take(slice(-1, None))
            end -= step
        return None

    def first_ts(self) -> int | None:
        """When the first bar opens."""
        span = self.sealed.span if self.sealed is not None else None
        first = span.from_ms if span is not None else None
        for part in sorted(self.pages, key=lambda part: part.hull.from_ms):
            if first is not None and first <= part.hull.from_ms:
                break  # Whatever comes now begins later.
            firsts = [page.first_ts for page in self._entries(part.path)]
            first = min((ts for ts in (first, *firsts) if ts is not None), default=None)
        before = self.unmerged(0, _ALWAYS[1] if first is None else first)
        firsts = [page.first_ts for pages in before.values() for page in pages]
        return min((ts for ts in (first, *firsts) if ts is not None), default=None)

    def end_ms(self, as_of: int | None = None) -> int:
        """Where the calendar ends: with what is covered, or after the last bar known `as_of`."""
        if as_of is not None:
            return self._end_as_of(as_of)
        covered = self.sealed.footer.coverage if self.sealed is not None else ()
        end = covered[-1].to_ms if covered else 0
        for part in sorted(self.pages, key=lambda part: -part.hull.to_ms):
            if part.hull.to_ms <= end:
                break  # Whatever comes now ends earlier.
            end = max([end, *(page.covered[-1].to_ms for page in self._entries(part.path))])
        behind = self.unmerged(end, _ALWAYS[1]).values()
        return max([end, *(page.covered[-1].to_ms for pages in behind for page in pages)])

    def _end_as_of(self, as_of: int) -> int:
        lasts = []
        for path, pages in self.unmerged().items():
            lasts += [p.last_ts for p in pages if p.known_at <= as_of and p.last_ts is not None]
            # A page that was gathered from several answers is as new as the newest of them.
            mixed = tuple(page for page in pages if page.known_at > as_of and page.rows)
            if mixed:
                rows = self._rows_in(path, mixed)
                known = rows["ts"].to_numpy()[rows["known_at"].to_numpy() <= as_of]
                lasts += [int(known.max())] if len(known) else []
        for segment in (self._sealed_file, self.versions):
            last = _last_known(segment, as_of) if segment is not None else None
            if last is not None:
                lasts.append(last)
        return self.series.timeframe.end(max(lasts)) if lasts else 0

    @property
    def _sealed_file(self) -> Sealed | None:
        return None if self.sealed is None else self.sealed.file

    def _open_sealed(self) -> None:
        path = layout.sealed_path(self.series)
        try:
            facts, self.sealed_stamp = self._shelf.facts(self.series)
        except Corrupt as error:
            if not is_of_a_copy(self._storage, self.series):
                raise
            # The minutes have all of it, and the next compaction makes it again.
            log.warning("copy_damaged", path=path, why=error.why)
            self.sealed_stamp = self._storage.stamp(path)
            return
        if facts is None or self.sealed_stamp is None:
            return
        expected = whose(self.series)
        reopened = partial(self._shelf.opened, path, self.sealed_stamp, Sealed, expected)
        view = SealedView(facts, reopened)
        if facts.footer.derived_from:
            self.derived = view
        else:
            self.sealed = view

    def _entries(self, path: str) -> tuple[PageEntry, ...]:
        """The pages in a page part that is sound."""
        if path in self.damaged:
            return ()
        known = self._pages_in.get(path)
        if known is not None:
            return known
        try:
            part = self._shelf.part(path)
        except Corrupt as error:
            self._damage(error)
            return ()
        pages = part.pages(self.series.symbol, self.series.timeframe.name)
        self._pages_in[path] = pages
        return pages

    def _part_rows(self, from_ms: int, to_ms: int) -> pa.Table:
        """The rows of all parts that touch `[from_ms, to_ms)`."""
        parts = self.unmerged(from_ms, to_ms).items()
        tables = [self._rows_in(path, pages) for path, pages in parts]
        return pa.concat_tables([schema_of(self.series).empty_table(), *tables])

    def _rows_in(self, path: str, pages: tuple[PageEntry, ...]) -> pa.Table:
        try:
            return self._shelf.rows(path, pages)
        except Corrupt as error:
            self._damage(error)
            return schema_of(self.series).empty_table()
        except Vanished:
            self._shelf.forget(path)
            raise

    def _damage(self, error: Corrupt) -> None:
        log.error("part_damaged", path=error.path, why=error.why, series=str(self.series))
        self.damaged[error.path] = error

    def _versions(self, segment: Segment | None, from_ms: int, to_ms: int) -> Versions:
        if segment is None:
            return Versions(Sightings.concat([]), np.zeros(0, dtype=np.int32))
        groups = segment.overlapping(from_ms, to_ms)
        held = [group for group in groups if segment.earliest_known_at(group) is not None]
        return from_table(segment.between(from_ms, to_ms, names_of(self.series), held))


def _listed(storage: Storage, folder: str) -> tuple[layout.PartName, ...]:
    names = (layout.parse_part(folder, name) for name in storage.names(folder))
    return tuple(name for name in names if name is not None)


def _touching(pages: tuple[PageEntry, ...], from_ms: int, to_ms: int) -> tuple[PageEntry, ...]:
    return tuple(page for page in pages if page.overlaps(from_ms, to_ms))


def _inside(sightings: Sightings, from_ms: int, to_ms: int) -> Sightings:
    inside = (sightings.batch.ts >= from_ms) & (sightings.batch.ts < to_ms)
    return sightings if inside.all() else sightings.take(inside)


def _last_known(segment: Segment, as_of: int) -> int | None:
    """The last time that had a version known at `as_of`."""
    for group in reversed(range(segment.groups)):
        earliest = segment.earliest_known_at(group)
        if earliest is None or earliest > as_of:
            continue
        table = segment.read([group], ["ts", "known_at"])
        known = table.filter(table["known_at"].is_valid())
        ts = known["ts"].to_numpy()[known["known_at"].to_numpy() <= as_of]
        if len(ts):
            return int(ts[-1])
    return None
