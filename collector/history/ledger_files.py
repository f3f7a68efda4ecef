"""The ledger's folder: listed, appended to, merged.

Segments answer for sequences without a hole between them: one begins where the one before it ends,
even when none of its events was accepted. So a listing that raced with a merge shows a hole, and
is taken again. Merging writes the long segment first and then deletes the short ones; where both
are seen, the long one counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.history.ledger import Ledger
from collector.history.segment import LEDGER_SCHEMA, encode, parse_segment
from collector.history.segment_shelf import SegmentShelf
from collector.store.port import Swapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.history.segment import LedgerSegment
    from collector.store.port import Storage

LONGEST = 1 << 17
"""Rows of a merged segment at most: what a merge holds in memory."""
FAN = 8
"""Segments of about one size that are merged into one."""
_LISTINGS = 20


class LedgerFiles:
    """One network's ledger. One process writes; others read."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder
        self.shelf = SegmentShelf(storage)

    def view(self, at_least: int = 0) -> Ledger:
        """The ledger now; `at_least` is a sequence that it is known to have reached.

        Raises Swapped when merges kept getting in the way.
        """
        for _ in range(_LISTINGS):
            names = self.storage.names(self.folder)
            found = [parse_segment(self.folder, name) for name in names]
            segments = in_sequence(each for each in found if each is not None)
            if segments is not None and (segments[-1].last if segments else 0) >= at_least:
                return Ledger(self.shelf, segments, segments[-1].last if segments else 0)
        raise Swapped(f"{self.folder}: segments are missing, or being merged all the time")

    def append(self, ledger: Ledger, last: int, table: pa.Table) -> Ledger:
        """Makes rows of the sequences after the ledger's head durable; the ledger with them."""
        segment, data = encode(self.folder, ledger.head + 1, last, table)
        self.storage.write_atomic(segment.path, data)
        return replace(ledger, segments=(*ledger.segments, segment), head=last)

    def merged(self, ledger: Ledger) -> Ledger:
        """Merges the newest segments as long as enough of them are of one size."""
        while (run := _worth_merging(ledger.segments)) is not None:
            ledger = self._merge(ledger, run)
        return ledger

    def sweep(self, ledger: Ledger) -> None:
        """Removes segments that a merge left behind when its process died."""
        known = {segment.path for segment in ledger.segments}
        for name in self.storage.names(self.folder):
            found = parse_segment(self.folder, name)
            if found is not None and found.path not in known and found.last <= ledger.head:
                self.storage.delete(found.path)

    def _merge(self, ledger: Ledger, run: slice) -> Ledger:
        short = ledger.segments[run]
        part = replace(ledger, segments=short)
        tables = [table for _, table in part.since(short[0].after)]
        table = pa.concat_tables([LEDGER_SCHEMA.empty_table(), *tables])
        long, data = encode(self.folder, short[0].after + 1, short[-1].last, table)
        self.storage.write_atomic(long.path, data)
        for each in short:
            self.storage.delete(each.path)
        segments = (*ledger.segments[: run.start], long, *ledger.segments[run.stop :])
        return replace(ledger, segments=segments)


def in_sequence(found: Iterable[LedgerSegment]) -> tuple[LedgerSegment, ...] | None:
    """Segments that answer for every sequence once, ascending; None when one is missing."""
    chosen: list[LedgerSegment] = []
    through = 0
    for segment in sorted(found, key=lambda each: (each.first, -each.last)):
        if segment.last <= through:
            continue  # A merged one has all of it.
        if segment.first > through + 1:
            return None
        chosen.append(replace(segment, after=through))
        through = segment.last
    return tuple(chosen)


def _worth_merging(segments: Sequence[LedgerSegment]) -> slice | None:
    """The newest run of FAN segments or more of about one size, or of enough rows for a long one.

    So a row is written again once for each size that its segment passes, and no more.
    """
    level, rows, end = 0, 0, len(segments)
    for at in reversed(range(end)):
        count = end - at
        if rows + segments[at].rows > LONGEST or segments[at].rows >= LONGEST // 2:
            return slice(at + 1, end) if rows >= LONGEST // 2 and count > 2 else None
        rows += segments[at].rows
        level = max(level, _level(segments[at]))
        if count >= FAN and (at == 0 or _level(segments[at - 1]) > level or count >= 2 * FAN):
            return slice(at, end)
    return None


def _level(segment: LedgerSegment) -> int:
    """Sizes, each eight times the one below."""
    return segment.rows.bit_length() // 3
