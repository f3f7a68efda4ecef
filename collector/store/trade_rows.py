"""Rows of trades: their columns, their order, and each trade once.

Rows ascend by time; within a millisecond the shorter id goes first, which is the order of numbers.
A trade is identified by its id and its time. It never changes: of two rows with both the same, the
one that was known first stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TRADE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("price", pa.float64(), nullable=False),
        pa.field("amount", pa.float64(), nullable=False),
        pa.field("side", pa.string()),
        pa.field("known_at", pa.int64(), nullable=False),
    ]
)
ROWS_PER_BATCH = 65_536
"""Rows of a row group, which is decompressed as a whole: some 4 MB."""


def merged(file: Iterable[pa.RecordBatch], fresh: pa.Table) -> Iterator[pa.RecordBatch]:
    """Batches of a file with `fresh` rows among them, a batch at a time, each trade once."""
    held = TRADE_SCHEMA.empty_table()
    for batch in file:
        if not len(batch):
            continue
        # The last millisecond may continue in the next batch.
        last = batch["ts"][-1].as_py()
        early = int(np.searchsorted(fresh["ts"].to_numpy(), last, side="right"))
        rows = once(pa.concat_tables([held, pa.Table.from_batches([batch]), fresh.slice(0, early)]))
        fresh = fresh.slice(early)
        done = int(np.searchsorted(rows["ts"].to_numpy(), last))
        held = rows.slice(done)
        yield from rows.slice(0, done).combine_chunks().to_batches()
    rest = once(pa.concat_tables([held, fresh])).combine_chunks()
    yield from rest.to_batches(ROWS_PER_BATCH)


def once(table: pa.Table) -> pa.Table:
    """The rows in order, each trade as it was first known."""
    rows = in_order(table)
    if len(rows) < 2:
        return rows
    ids, ts = rows["id"].combine_chunks(), rows["ts"].combine_chunks()
    again = pc.and_(pc.equal(ids[1:], ids[:-1]), pc.equal(ts[1:], ts[:-1]))
    first = np.append(True, ~again.to_numpy(zero_copy_only=False))
    return rows if first.all() else rows.filter(pa.array(first))


def in_order(table: pa.Table) -> pa.Table:
    """The same rows, sorted."""
    keyed = table.append_column("length", pc.utf8_length(table["id"]))
    by = ("ts", "length", "id", "known_at")
    return table.take(pc.sort_indices(keyed, sort_keys=[(name, "ascending") for name in by]))
