"""One look at everything a series has: its sealed file, its older versions and its parts.

Parts are listed before the sealed file is opened. A part that was merged and deleted before the
listing is inside the sealed file that is opened after it; one that is deleted later is missed when
it is opened (Vanished), and whoever looks takes a new snapshot. So no order of events hides a row,
and since folding a sighting twice changes nothing, none is seen twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from collector import logs
from collector.market.interval import Interval, union
from collector.pipeline.fold import History, Sightings, Versions, fold
from collector.store import layout
from collector.store.port import Corrupt, Vanished
from collector.store.sealed import Sealed
from collector.store.segment import ROWS_PER_GROUP, SEGMENT_SCHEMA, Segment, from_table

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
_File = TypeVar("_File", bound=Segment)


class Snapshot:
    """A series as it was at one moment. A context manager; it holds files open."""

    def __init__(self, storage: Storage, shelf: Shelf, series: Series) -> None:
        self.series = series
        self.damaged: dict[str, Corrupt] = {}
        """Parts that could not be read. They count as if they were not there."""
        self._storage = storage
        self._shelf = shelf
        self._pages_in: dict[str, tuple[PageEntry, ...]] = {}
        self.pages = _listed(storage, layout.pages_folder(series))
        self.groups = _listed(storage, layout.groups_folder(series.exchange_id))
        self.parts = (*self.pages, *self.groups)
        self.sealed: Sealed | None = None
        self.derived: Sealed | None = None
        """The file in the sealed one's place, when it holds nothing but what minutes made."""
        self.versions: Segment | None = None
        try:
            self.sealed, self.sealed_stamp = self._opened(layout.sealed_path(series), Sealed)
            if self.sealed is not None and self.sealed.footer.derived_from:
                self.sealed, self.derived = None, self.sealed
            self.versions, self.versions_stamp = self._opened(layout.versions_path(series), Segment)
        except BaseException:
            self.close()
            raise

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
        for segment in (self.sealed, self.derived, self.versions):
            if segment is not None:
                segment.close()

    def unmerged(
        self, from_ms: int = _ALWAYS[0], to_ms: int = _ALWAYS[1]
    ) -> dict[str, tuple[PageEntry, ...]]:
        """By part, the pages of this series that touch `[from_ms, to_ms)` and are not sealed."""
        found: dict[str, tuple[PageEntry, ...]] = {}
        for part in self.parts:
            if part.hull.from_ms < to_ms and from_ms < part.hull.to_ms:
                near = tuple(e for e in self._entries(part.path) if e.overlaps(from_ms, to_ms))
                if near:
                    found[part.path] = near
        return found

    def history(self, from_ms: int, to_ms: int, as_of: int | None = None) -> History:
        """Every version of every bar in `[from_ms, to_ms)`."""
        sealed = self._versions(self.sealed, from_ms, to_ms)
        older = self._versions(self.versions, from_ms, to_ms)
        fresh = self._part_rows(from_ms, to_ms)
        if as_of is None and not len(fresh):
            return History(current=sealed, older=older)  # It was folded when it was sealed.
        sightings = Sightings.concat([sealed.rows, older.rows, from_table(fresh).rows])
        inside = (sightings.batch.ts >= from_ms) & (sightings.batch.ts < to_ms)
        if not inside.all():
            sightings = sightings.take(inside)
        return fold(sightings, as_of)

    def covered(self, from_ms: int = _ALWAYS[0], to_ms: int = _ALWAYS[1]) -> tuple[Interval, ...]:
        """The ledger, as far as it touches `[from_ms, to_ms)`: ascending and disjoint."""
        sealed = self.sealed.footer.coverage if self.sealed is not None else ()
        parts = self.unmerged(from_ms, to_ms).values()
        told = (c for entries in parts for entry in entries for c in entry.covered)
        near = (each for each in (*sealed, *told) if each.from_ms < to_ms and from_ms < each.to_ms)
        return union(each.interval for each in near)

    def part_times(self) -> NDArray[np.int64]:
        """The opening times of all bars in parts, in no order, repeated at will."""
        times: NDArray[np.int64] = self._part_rows(*_ALWAYS)["ts"].to_numpy()
        return times

    def last_before(self, ts_ms: int, as_of: int | None = None) -> CandleBatch | None:
        """The last bar before `ts_ms`, as a batch of one; None when there is none."""
        starts = [part.hull.from_ms for part in self.parts]
        if self.sealed is not None and (span := self.sealed.span()) is not None:
            starts.append(span.from_ms)
        first = min(starts, default=ts_ms)
        step = ROWS_PER_GROUP * self.series.timeframe.ms
        end = ts_ms
        while end > first:
            bars = self.history(end - step, end, as_of).current.rows.batch
            if len(bars):
                return bars.take(slice(-1, None))
            end -= step
        return None

    def first_ts(self) -> int | None:
        """When the first bar opens."""
        span = self.sealed.span() if self.sealed is not None else None
        first = span.from_ms if span is not None else None
        for part in sorted(self.parts, key=lambda part: part.hull.from_ms):
            if first is not None and first <= part.hull.from_ms:
                break  # Whatever comes now begins later.
            told = [page.first_ts for page in self._entries(part.path)]
            first = min((ts for ts in (first, *told) if ts is not None), default=None)
        return first

    def end_ms(self, as_of: int | None = None) -> int:
        """Where the calendar ends: with what is covered, or after the last bar known `as_of`."""
        if as_of is not None:
            return self._end_as_of(as_of)
        covered = self.sealed.footer.coverage if self.sealed is not None else ()
        end = covered[-1].to_ms if covered else 0
        for part in sorted(self.parts, key=lambda part: -part.hull.to_ms):
            if part.hull.to_ms <= end:
                break  # Whatever comes now ends earlier.
            end = max([end, *(page.covered[-1].to_ms for page in self._entries(part.path))])
        return end

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
        for segment in (self.sealed, self.versions):
            last = _last_known(segment, as_of) if segment is not None else None
            if last is not None:
                lasts.append(last)
        return max(lasts) + self.series.timeframe.ms if lasts else 0

    def _opened(self, path: str, kind: type[_File]) -> tuple[_File | None, str | None]:
        """The file at `path` and the stamp of exactly that file."""
        while (stamp := self._storage.stamp(path)) is not None:
            try:
                segment = kind.open(self._storage, path, self._shelf.recall(path, stamp))
            except Vanished:
                continue
            if self._storage.stamp(path) == stamp:
                self._shelf.remember(path, stamp, segment.raw_footer)
                return segment, stamp
            segment.close()
        return None, None

    def _is_merged(self, path: str) -> bool:
        if self.sealed is None or not path.startswith(f"{self.series.exchange_id}/parts/"):
            return False
        return path.rpartition("/")[2] in self.sealed.footer.merged

    def _entries(self, path: str) -> tuple[PageEntry, ...]:
        """The pages of this series in a part that is sound and not merged yet."""
        if path in self.damaged or self._is_merged(path):
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
        return pa.concat_tables([SEGMENT_SCHEMA.empty_table(), *tables])

    def _rows_in(self, path: str, pages: tuple[PageEntry, ...]) -> pa.Table:
        try:
            return self._shelf.rows(path, pages)
        except Corrupt as error:
            self._damage(error)
            return SEGMENT_SCHEMA.empty_table()
        except Vanished:
            self._shelf.forget(path)
            raise

    def _damage(self, error: Corrupt) -> None:
        log.error("part_damaged", path=error.path, why=str(error), series=str(self.series))
        self.damaged[error.path] = error

    @staticmethod
    def _versions(segment: Segment | None, from_ms: int, to_ms: int) -> Versions:
        if segment is None:
            return Versions(Sightings.concat([]), np.zeros(0, dtype=np.int32))
        groups = segment.overlapping(from_ms, to_ms)
        held = [group for group in groups if segment.earliest_known_at(group) is not None]
        return from_table(segment.between(from_ms, to_ms, SEGMENT_SCHEMA.names, held))


def _listed(storage: Storage, folder: str) -> tuple[layout.PartName, ...]:
    names = (layout.parse_part(folder, name) for name in storage.names(folder))
    return tuple(name for name in names if name is not None)


def _last_known(segment: Segment, as_of: int) -> int | None:
    """The last time of which a version was known at `as_of`."""
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
