"""What `collector export` does: stored rows into one file, never more than a batch in memory."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from collector.cli.output import Output
from collector.errors import StoreError
from collector.progress import late_progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collector.cli.actions.rows import Rows

Form = Literal["csv", "parquet", "arrow"]


def export(rows: Rows, form: Form, out: Path, force: bool) -> Output:
    """Writes the file whole or not at all. `-` is standard output."""
    began = time.monotonic()
    if str(out) == "-":
        count = write(rows, form, sys.stdout.buffer)
        sys.stdout.flush()
        return Output({}, "", [f"{count:,} {rows.noun}"])
    if out.exists() and not force:
        raise StoreError(f"{out} is there already: choose another name, or use --force")
    with replacing(out) as sink:
        count = write(rows, form, sink)
    seconds, size = time.monotonic() - began, out.stat().st_size
    facts = {"out": str(out), "format": form, "rows": count, "bytes": size}
    message = f"{count:,} {rows.noun} in {out} ({size / 1e6:,.1f} MB, {seconds:.1f} s)"
    return Output(facts, message)


@contextmanager
def replacing(out: Path) -> Iterator[BinaryIO]:
    """A file that gets the name `out` when the block ends well, and is removed otherwise."""
    draft = out.with_name(f".{out.name}.{os.getpid()}.new")
    try:
        with draft.open("wb") as sink:
            yield sink
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)


def write(rows: Rows, form: Form, sink: BinaryIO) -> int:
    """Writes every batch as it comes; returns how many rows."""
    count = 0
    with ExitStack() as stack:
        schema, batches = stack.enter_context(rows.range.all())
        writer = stack.enter_context(_writer(form, schema, sink))
        progress = stack.enter_context(late_progress(rows.steps, rows.step))
        for batch in batches:
            writer.write_batch(batch)
            count += len(batch)
            if len(batch):
                progress(rows.steps_to(batch))
    return count


def _writer(form: Form, schema: pa.Schema, sink: BinaryIO) -> Any:
    if form == "csv":
        # Arrow would put its own header into quotes.
        sink.write((",".join(schema.names) + "\n").encode())
        return pa.csv.CSVWriter(sink, schema, write_options=_PLAIN_CSV)
    if form == "arrow":
        return pa.ipc.new_file(sink, schema)
    return pa.parquet.ParquetWriter(sink, schema, compression="zstd")


_PLAIN_CSV = pa.csv.WriteOptions(include_header=False, quoting_style="needed")
