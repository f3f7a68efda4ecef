"""What was read last, kept at hand.

A part never changes, and one group part serves many series: its footer and, when it is small, its
rows are read once for all of them. A sealed file's stamp tells when it changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from collector.store.part import Part, read_all, read_pages, read_part
from collector.store.segment import ROWS_PER_GROUP, SEGMENT_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq

    from collector.store.part import PageEntry
    from collector.store.port import Storage

_MOST_SERIES = 100_000
"""In the footers of parts: about 60 MB."""
_MOST_BYTES = 64_000_000
"""Of rows of group parts."""
_MOST_FILES = 64
"""Sealed files: about a megabyte each for ten years of minutes."""

T = TypeVar("T")


class Shelf:
    """Footers and rows that were read last. Safe to use from many threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._parts: _Recent[Part] = _Recent(_MOST_SERIES)
        self._tables: _Recent[pa.Table] = _Recent(_MOST_BYTES)
        self._files: _Recent[tuple[str, pq.FileMetaData]] = _Recent(_MOST_FILES)

    def recall(self, path: str, stamp: str) -> pq.FileMetaData | None:
        """The footer of a sealed or versions file, if exactly this file was read before."""
        known = self._files.get(path)
        return known[1] if known is not None and known[0] == stamp else None

    def remember(self, path: str, stamp: str, footer: pq.FileMetaData) -> None:
        self._files.put(path, (stamp, footer), 1)

    def part(self, path: str) -> Part:
        """A part's footer. Raises Vanished or Corrupt; a part known from before may be gone."""
        known = self._parts.get(path)
        if known is None:
            known = read_part(self._storage, path)
            self._parts.put(path, known, known.size)
        return known

    def rows(self, path: str, entries: Sequence[PageEntry]) -> pa.Table:
        """The rows of some pages of a part, as SEGMENT_SCHEMA. Raises Vanished or Corrupt."""
        part = self.part(path)
        if part.size == 1 or part.rows > ROWS_PER_GROUP:
            return read_pages(self._storage, part, entries)
        table = self._tables.get(path)
        if table is None:
            table = read_all(self._storage, part)
            self._tables.put(path, table, table.nbytes)
        if len(entries) == 1:
            return table.slice(entries[0].at, entries[0].rows)
        pages = [table.slice(entry.at, entry.rows) for entry in entries]
        return pa.concat_tables([SEGMENT_SCHEMA.empty_table(), *pages])

    def forget(self, path: str) -> None:
        self._parts.drop(path)
        self._tables.drop(path)


class _Recent(Generic[T]):
    """The values used last, as many as `most` allows by weight."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._values: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> T | None:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: str, value: T, weight: int) -> None:
        self.drop(key)
        with self._lock:
            self._values[key] = (value, weight)
            self._weight += weight
            while self._weight > self._most and len(self._values) > 1:
                _, (_, lost) = self._values.popitem(last=False)
                self._weight -= lost

    def drop(self, key: str) -> None:
        with self._lock:
            found = self._values.pop(key, None)
            if found is not None:
                self._weight -= found[1]
