"""Segments read from storage: small ones are kept whole, of large ones the footers."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from collector.history.layout import check_digest, shortened
from collector.history.segment import LEDGER_SCHEMA, WORDS, decode
from collector.store.port import Corrupt

if TYPE_CHECKING:
    import numpy as np

    from collector.history.segment import LedgerSegment
    from collector.store.port import Storage

SMALL = 8_192
"""Rows up to which a segment is kept whole."""
_KEPT_BYTES = 32 << 20
_KEPT_FOOTERS = 256


class SegmentShelf:
    """Safe to share between threads: what two of them read at once is the same."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._sound: set[str] = set()
        """Large segments whose digest was compared."""

    def whole(self, segment: LedgerSegment) -> pa.Table:
        """All rows. Raises Vanished when it was merged, Corrupt when it is damaged."""
        kept = self._tables.get(segment.path)
        if kept is not None:
            return kept
        table = decode(segment.path, self.storage.read(segment.path))
        if segment.rows <= SMALL:
            self.keep(segment, table)
        return table

    def keep(self, segment: LedgerSegment, table: pa.Table) -> None:
        """Remembers a small segment; those kept longest make room."""
        if segment.rows > SMALL or segment.path in self._tables:
            return
        self._tables[segment.path] = table
        self._bytes += table.nbytes
        while self._bytes > _KEPT_BYTES and len(self._tables) > 1:
            try:
                _, old = self._tables.popitem(last=False)
            except KeyError:
                break
            self._bytes -= old.nbytes

    def window(self, segment: LedgerSegment, from_ms: int, to_ms: int) -> pa.Table:
        """The rows of `[from_ms, to_ms)`."""
        if segment.rows <= SMALL:
            return _cut(self.whole(segment), from_ms, to_ms)
        return _cut(self._groups(segment, "ts", from_ms, to_ms), from_ms, to_ms)

    def since(self, segment: LedgerSegment, sequence: int) -> pa.Table:
        """The rows after `sequence`, and perhaps some before."""
        if segment.rows <= SMALL or sequence < segment.first:
            return self.whole(segment)
        return self._groups(segment, "sequence", sequence + 1, segment.last + 1)

    def _groups(self, segment: LedgerSegment, column: str, first: int, end: int) -> pa.Table:
        """The row groups in which the column has values of `[first, end)`, by their statistics."""
        footer = self._footers.get(segment.path)
        if footer is not None and not _holding(footer, column, first, end):
            return LEDGER_SCHEMA.empty_table()
        self._check(segment)
        try:
            with self.storage.open(segment.path) as source:
                file = pq.ParquetFile(
                    source,
                    metadata=footer,
                    read_dictionary=WORDS,
                    page_checksum_verification=True,
                )
                wanted = _holding(self._kept(segment, file.metadata), column, first, end)
                # One or two are unpacked sooner than threads are woken for them.
                table = file.read_row_groups(wanted, use_threads=len(wanted) > 2)
                return table.cast(LEDGER_SCHEMA)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Corrupt(segment.path, error) from error

    def _check(self, segment: LedgerSegment) -> None:
        """Reads the whole file once in a process: page checksums do not cover the footer."""
        if segment.path not in self._sound:
            check_digest(segment.path, shortened(self.storage.sha256(segment.path)))
            self._sound.add(segment.path)

    def _kept(self, segment: LedgerSegment, footer: pq.FileMetaData) -> pq.FileMetaData:
        self._footers[segment.path] = footer
        while len(self._footers) > _KEPT_FOOTERS:
            self._footers.popitem(last=False)
        return footer


def _holding(footer: pq.FileMetaData, column: str, first: int, end: int) -> list[int]:
    at = LEDGER_SCHEMA.get_field_index(column)
    groups = range(footer.num_row_groups)
    bounds = (footer.row_group(group).column(at).statistics for group in groups)
    return [
        group
        for group, each in zip(groups, bounds, strict=True)
        if each.min < end and first <= each.max
    ]


def _cut(table: pa.Table, from_ms: int, to_ms: int) -> pa.Table:
    """Rows are in time order, so a window is a slice."""
    ts: np.ndarray[tuple[int], np.dtype[np.int64]] = table["ts"].to_numpy()
    first, end = ts.searchsorted([from_ms, to_ms])
    return table.slice(first, end - first)
