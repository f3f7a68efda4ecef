"""A range of stored rows, bars or trades: to be shown, or written to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.fleet.interface import RowRange


@dataclass(frozen=True, slots=True)
class Rows:
    """A range with the words for what is in it."""

    noun: str
    range: RowRange
    step: str
    """What progress is counted in."""
    step_ms: int

    @property
    def steps(self) -> int:
        """What a progress bar counts towards."""
        return max(0, self.range.to_ms - self.range.from_ms) // self.step_ms

    def steps_to(self, batch: pa.RecordBatch) -> int:
        """How far the last row of a batch is. Slots that were left out are behind it as well."""
        last: int = batch.column("ts")[-1].as_py()
        return (last - self.range.from_ms) // self.step_ms


def table_facts(table: pa.Table) -> dict[str, Any]:
    """The names of the columns, and the rows as lists."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return {"columns": table.schema.names, "rows": rows}
