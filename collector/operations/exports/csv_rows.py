"""Batches as CSV: the heading, the options, and text that a spreadsheet does not calculate."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from collector.text import FORMULA

OPTIONS = pa.csv.WriteOptions(include_header=False, quoting_style="needed")


def heading(schema: pa.Schema) -> bytes:
    """The names of the columns; Arrow would put its own header into quotes."""
    return (",".join(schema.names) + "\n").encode()


def escaped(batch: pa.RecordBatch) -> pa.RecordBatch:
    """An apostrophe before text that begins as a formula does; numbers stay as they are."""
    columns = [
        pc.replace_substring_regex(column, FORMULA, r"'\1")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in (_plain_text(each) for each in batch.columns)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain_text(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
