"""A cache of what was read last.

A part never changes, and one group part serves many series: its footer is read once for all of them
(part_index.py), and so are its rows. A sealed file's stamp shows when it changed.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from collector.store import layout
from collector.store.footer import whose
from collector.store.part import Part, groups_of, read_groups, read_part, rows_of
from collector.store.part_index import PartIndex
from collector.store.port import Corrupt, Vanished
from collector.store.sealed import Sealed, SealedFacts
from collector.store.segment import ROWS_PER_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from collector.market.series import Series
    from collector.store.part import PageEntry
    from collector.store.port import Storage
    from collector.store.segment import Segment

_MOST_PAGES = 1_500_000
"""In the indexes of all exchanges: some 120 MB. The last used one is kept, whatever its size."""
_MOST_PARTS = 20_000
"""Page parts, of which only the footer is kept."""
_MOST_BYTES = 52_000_000
"""Of rows of group parts. A year of minutes, which is merged from here, takes 49 million."""
_LONG_PAGE = 100
"""Rows of a page of history."""
_MOST_FILES = 64
"""Sealed files: about a megabyte each for ten years of minutes."""
_MOST_FACTS = 100_000
"""For sealed files: each counts one, plus one for every range of its ledger and every part it
names. Some 60 MB.
"""

File = TypeVar("File", bound="Segment")
K = TypeVar("K", bound="Hashable")
T = TypeVar("T")


class Shelf:
    """Footers and rows that were read last. Safe to use from many threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._indexes: OrderedDict[str, PartIndex] = OrderedDict()
        self._parts: _Recent[str, Part] = _Recent(_MOST_PARTS)
        self._tables: _Recent[tuple[str, int], pa.Table] = _Recent(_MOST_BYTES)
        self._files: _Recent[str, tuple[str, pq.FileMetaData]] = _Recent(_MOST_FILES)
        self._facts: _Recent[str, tuple[str, SealedFacts]] = _Recent(_MOST_FACTS)
        self._sound: _Recent[str, tuple[str | None, ...]] = _Recent(_MOST_FACTS)

    def facts(self, series: Series) -> tuple[SealedFacts, str] | tuple[None, None]:
        """What the sealed file of a series records, and its stamp. Raises Corrupt."""
        path = layout.sealed_path(series)
        while (stamp := self._storage.stamp(path)) is not None:
            known = self._facts.get(path)
            if known is not None and known[0] == stamp:
                return known[1], stamp
            with contextlib.suppress(Vanished):
                file = self.opened(path, stamp, Sealed, whose(series))
                file.close()
                facts = SealedFacts.of(file)
                self._facts.put(path, (stamp, facts), facts.weight)
                return facts, stamp
        return None, None

    def opened(self, path: str, stamp: str, kind: type[File], expected: Mapping[str, str]) -> File:
        """The file that the stamp names. Raises Vanished when it was replaced."""
        known = self.recall(path, stamp)
        try:
            file = kind.open(self._storage, path, known, expected)
        except Corrupt:
            if self._storage.stamp(path) != stamp:
                raise Vanished(f"{path} was replaced") from None
            raise
        if self._storage.stamp(path) != stamp:
            file.close()
            raise Vanished(f"{path} was replaced")
        self.remember(path, stamp, file.raw_footer)
        return file

    def is_sound(self, path: str, stamps: tuple[str | None, ...]) -> bool:
        """Whether exactly this file was read to its end and found sound."""
        return self._sound.get(path) == stamps

    def note_sound(self, path: str, stamps: tuple[str | None, ...]) -> None:
        self._sound.put(path, stamps, 1)

    def recall(self, path: str, stamp: str) -> pq.FileMetaData | None:
        """The footer of a sealed or versions file, if exactly this file was read before."""
        known = self._files.get(path)
        return known[1] if known is not None and known[0] == stamp else None

    def remember(self, path: str, stamp: str, footer: pq.FileMetaData) -> None:
        self._files.put(path, (stamp, footer), 1)

    def index(self, exchange_id: str) -> PartIndex:
        """What the group parts of an exchange hold, as of their last listing."""
        with self._lock:
            index = self._indexes.get(exchange_id)
            if index is None:
                index = self._indexes[exchange_id] = PartIndex(self._storage, exchange_id)
            self._indexes.move_to_end(exchange_id)
            while len(self._indexes) > 1 and self._pages() > _MOST_PAGES:
                self._indexes.popitem(last=False)
            return index

    def part(self, path: str) -> Part:
        """A page part's footer. Raises Vanished or Corrupt; a cached one may be gone."""
        known = self._parts.get(path)
        if known is None:
            known = read_part(self._storage, path)
            self._parts.put(path, known, 1)
        return known

    def rows(self, path: str, entries: Sequence[PageEntry]) -> pa.Table:
        """The rows of some pages of a part, as SEGMENT_SCHEMA. Raises Vanished or Corrupt."""
        wanted = groups_of(entries)
        if not layout.is_group(path):
            return rows_of(path, entries, read_groups(self._storage, path, wanted))
        found = {group: self._tables.get((path, group)) for group in wanted}
        tables = {group: table for group, table in found.items() if table is not None}
        lacking = [group for group in wanted if group not in tables]
        if lacking:
            for group, table in read_groups(self._storage, path, lacking).items():
                tables[group] = table
                self._tables.put((path, group), table, table.nbytes)
        return rows_of(path, entries, tables)

    def put_written(self, path: str, rows: pa.Table, pages: int) -> None:
        """The rows of a part that was just written, if they are history.

        Pages of history are merged when the last one has come. Those of new bars stay in their part
        for hours, and most of them are never read.
        """
        if len(rows) >= _LONG_PAGE * pages:
            for group, at in enumerate(range(0, len(rows), ROWS_PER_GROUP)):
                table = rows.slice(at, ROWS_PER_GROUP)
                self._tables.put((path, group), table, table.nbytes)

    def forget(self, path: str) -> None:
        """The part is gone, or its cached data cannot be trusted."""
        self._parts.drop(path)
        if layout.is_group(path):
            self._tables.drop_all(lambda key: key[0] == path)
            self.index(path.partition("/")[0]).forget(path)

    def _pages(self) -> int:
        return sum(index.weight for index in self._indexes.values())


class _Recent(Generic[K, T]):
    """The values used last, as many as `most` allows by weight."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._values: OrderedDict[K, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> T | None:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: K, value: T, weight: int) -> None:
        self.drop(key)
        with self._lock:
            self._values[key] = (value, weight)
            self._weight += weight
            while self._weight > self._most and len(self._values) > 1:
                _, (_, lost) = self._values.popitem(last=False)
                self._weight -= lost

    def drop(self, key: K) -> None:
        with self._lock:
            found = self._values.pop(key, None)
            if found is not None:
                self._weight -= found[1]

    def drop_all(self, of: Callable[[K], bool]) -> None:
        for key in filter(of, list(self._values)):
            self.drop(key)
