"""A range of stored rows, bars or trades: to be shown, or written to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Rows:
    """Batches in the order of `ts`, to be read once, and the words for what is in them."""

    noun: str
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    from_ms: int
    to_ms: int
    step: str
    """What progress is counted in."""
    step_ms: int

    @property
    def steps(self) -> int:
        """What a progress bar counts towards."""
        return max(0, self.to_ms - self.from_ms) // self.step_ms

    def steps_to(self, batch: pa.RecordBatch) -> int:
        """How far the last row of a batch is. Slots that were left out are behind it as well."""
        last: int = batch.column("ts")[-1].as_py()
        return (last - self.from_ms) // self.step_ms


def first_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema, limit: int) -> pa.Table:
    """The first rows, reading no further than they go."""
    taken, kept = 0, []
    for batch in batches:
        kept.append(batch.slice(0, limit - taken))
        taken += len(kept[-1])
        if taken >= limit:
            break
    return pa.Table.from_batches(kept, schema)


def table_facts(table: pa.Table) -> dict[str, Any]:
    """The names of the columns, and the rows as lists."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return {"columns": table.schema.names, "rows": rows}
