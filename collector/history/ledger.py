"""The ledger as it was at one moment: rows of a window of time, or since a sequence.

It is a list of segments that never change, so a view of it stays valid until compaction merges one
of them away; reading that one raises Vanished, and the reader takes a new view.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.history.segment import LEDGER_SCHEMA, in_time_order, trade_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from collector.history.segment import LedgerSegment
    from collector.history.segment_shelf import SegmentShelf
    from collector.history.trade_columns import TradeColumns


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every row up to the sequence `head`."""

    shelf: SegmentShelf = field(compare=False)
    segments: tuple[LedgerSegment, ...]
    head: int

    @property
    def span(self) -> tuple[int, int] | None:
        """From the earliest time of any row to just after the latest; None without rows."""
        held = [segment for segment in self.segments if segment.rows]
        if not held:
            return None
        return min(each.from_ms for each in held), max(each.to_ms for each in held)

    def through(self, sequence: int) -> Ledger:
        """The ledger as it was when it ended with `sequence`."""
        return replace(self, head=min(self.head, sequence))

    def rows_after(self, sequence: int) -> int:
        """How many rows lie in segments that go beyond a sequence."""
        return sum(each.rows for each in self.segments if each.last > sequence)

    def about(self, from_ms: int, to_ms: int) -> float:
        """About how many rows a window has, by the names of segments."""
        parts = (
            (min(each.to_ms, to_ms) - max(each.from_ms, from_ms))
            * each.rows
            / (each.to_ms - each.from_ms)
            for each in self.segments
            if each.overlaps(from_ms, to_ms)
        )
        return sum(parts)

    def rows(self, from_ms: int, to_ms: int) -> pa.Table:
        """Additions and deletions of the trades of `[from_ms, to_ms)`, by time and position.

        Costs what lies in the window: segments are skipped by name, row groups by statistics.
        """
        tables = [
            self._counted(segment, self.shelf.window(segment, from_ms, to_ms))
            for segment in self.segments
            if segment.overlaps(from_ms, to_ms) and segment.first <= self.head
        ]
        tables = [table for table in tables if len(table)]
        if len(tables) == 1:
            return tables[0]
        # Sorting again: a late trade lies in a later segment than its window's other trades.
        return in_time_order(pa.concat_tables([LEDGER_SCHEMA.empty_table(), *tables]))

    def trades(self, from_ms: int, to_ms: int) -> TradeColumns:
        """The trades of `[from_ms, to_ms)` that were added and not deleted, in order."""
        return trade_columns(surviving(self.rows(from_ms, to_ms)))

    def since(self, sequence: int) -> Iterator[tuple[int, pa.Table]]:
        """Rows after `sequence`, a segment at a time, with the last sequence it answers for."""
        for segment in self.segments:
            if segment.last > sequence and segment.first <= self.head:
                table = self._counted(segment, self.shelf.since(segment, sequence))
                fresh = table["sequence"].to_numpy() > sequence
                yield min(segment.last, self.head), table if fresh.all() else table.filter(fresh)

    def _counted(self, segment: LedgerSegment, table: pa.Table) -> pa.Table:
        """Without rows that another segment has, or that came after the view's head."""
        if segment.after < segment.first and segment.last <= self.head:
            return table
        sequence = table["sequence"].to_numpy()
        return table.filter((sequence > segment.after) & (sequence <= self.head))


def surviving(rows: pa.Table) -> pa.Table:
    """The additions that no deletion followed. A deletion has the time of what it deletes."""
    is_add = adds(rows)
    if is_add.all():
        return rows
    dead_hashes = rows["tx_hash"].filter(~is_add).unique()
    contested = np.flatnonzero(pc.is_in(rows["tx_hash"], value_set=dead_hashes).to_numpy())
    keys = ("tx_hash", "input", "ts", "sequence")
    columns = (rows[name].take(contested).to_pylist() for name in keys)
    last: dict[tuple[str, int, int], tuple[int, int]] = {}
    for tx_hash, index, ts, sequence, row in zip(*columns, contested.tolist(), strict=True):
        key = (tx_hash, index, ts)
        last[key] = max(last.get(key, (-1, -1)), (sequence, row))
    alive = is_add.copy()
    alive[contested] = False
    kept = [row for _, row in last.values() if is_add[row]]
    alive[kept] = True
    return rows.filter(alive)


def adds(rows: pa.Table) -> NDArray[np.bool_]:
    """Which rows are additions."""
    found: NDArray[np.bool_] = pc.equal(rows["op"].cast(pa.string()), "a").to_numpy()
    return found
