"""What `collector export` does: stored rows into one file, never more than a batch in memory."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from collector.cli.output import Output
from collector.errors import StoreError
from collector.operations.exports import csv_rows
from collector.operations.exports.whole_file import ExportedFile, replacing
from collector.progress import late_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from collector.cli.actions.rows import Rows

Form = Literal["csv", "parquet", "arrow"]


def export(rows: Rows, form: Form, out: Path, force: bool, *, escape: bool = False) -> Output:
    """Writes the file whole or not at all. `-` is standard output.

    `escape` keeps spreadsheets from reading text of a csv as a formula.
    """
    began = time.monotonic()
    if str(out) == "-":
        count = write(rows, form, sys.stdout.buffer, escape=escape)
        sys.stdout.flush()
        return Output({}, "", [f"{count:,} {rows.noun}"])
    if out.exists() and not force:
        raise StoreError(f"{out} is there already: choose another name, or use --force")
    with replacing(out) as sink:
        count = write(rows, form, sink, escape=escape)
    return _written(ExportedFile(out, count), form, rows.noun, time.monotonic() - began)


def export_to(
    program: str, rows: Rows, written: Callable[[Iterator[pa.RecordBatch]], ExportedFile]
) -> Output:
    """Writes a file as another program makes it; `written` does that from the batches."""
    began = time.monotonic()
    with rows.range.all() as (_, batches):
        made = written(_watched(rows, batches))
    return _written(made, program, rows.noun, time.monotonic() - began)


def _written(made: ExportedFile, form: str, noun: str, seconds: float) -> Output:
    size = made.path.stat().st_size
    facts = {"out": str(made.path), "format": form, "rows": made.rows, "bytes": size}
    message = f"{made.rows:,} {noun} in {made.path} ({size / 1e6:,.1f} MB, {seconds:.1f} s)"
    return Output(facts, message)


def write(rows: Rows, form: Form, sink: BinaryIO, *, escape: bool = False) -> int:
    """Writes every batch as it comes; returns how many rows."""
    count = 0
    with rows.range.all() as (schema, batches), _writer(form, schema, sink) as writer:
        for batch in _watched(rows, batches):
            writer.write_batch(csv_rows.escaped(batch) if escape else batch)
            count += len(batch)
    return count


def _watched(rows: Rows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, with a progress bar when they take long."""
    with late_progress(rows.steps, rows.step) as progress:
        for batch in batches:
            yield batch
            if len(batch):
                progress(rows.steps_to(batch))


def _writer(form: Form, schema: pa.Schema, sink: BinaryIO) -> Any:
    if form == "csv":
        sink.write(csv_rows.heading(schema))
        return pa.csv.CSVWriter(sink, schema, write_options=csv_rows.OPTIONS)
    if form == "arrow":
        return pa.ipc.new_file(sink, schema)
    return pa.parquet.ParquetWriter(sink, schema, compression="zstd")
