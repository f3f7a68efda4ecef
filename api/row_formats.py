"""Rows on the wire: batches in, pieces of a csv, json, arrow or parquet answer out.

Every encoder holds one slice of a batch at a time, whatever the length of the range.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from collector.operations.exports import csv_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Format = Literal["json", "csv", "arrow", "parquet"]

MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
ROWS_PER_PIECE = 8_192


def encode(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    form: Format,
    *,
    limit: int | None = None,
    escape: bool = False,
) -> Iterator[bytes]:
    """The whole answer in pieces. The first piece is made of the first batch that has rows.

    `limit` is the number of rows at most. `escape` keeps spreadsheets from reading text of a csv as
    a formula.
    """
    slices = _slices(batches)
    if limit is not None:
        slices = _first_rows(slices, limit)
    if escape and form == "csv":
        slices = map(csv_rows.escaped, slices)
    return _ENCODERS[form](slices, schema)


def _first_rows(slices: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    for piece in slices:
        yield piece.slice(0, left)
        left -= piece.num_rows
        if left <= 0:
            return


def _slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_PER_PIECE):
            yield batch.slice(start, ROWS_PER_PIECE)


def _csv(slices: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    heading = csv_rows.heading(schema)
    for piece in slices:
        sink = io.BytesIO()
        pa.csv.write_csv(piece, sink, csv_rows.OPTIONS)
        yield heading + sink.getvalue()
        heading = b""
    if heading:
        yield heading


def _json(slices: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    before = b'{"columns":' + orjson.dumps(schema.names) + b',"rows":['
    for piece in slices:
        rows = list(zip(*(column.to_pylist() for column in piece.columns), strict=True))
        # Without its brackets: the rows of all pieces make one list.
        yield before + orjson.dumps(rows)[1:-1]
        before = b","
    yield (b"" if before == b"," else before) + b"]}"


class Drain(io.RawIOBase):
    """A file that is only ever written to the end of, emptied between two writes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces.append(piece)
        self._position += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._position

    def emptied(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _arrow(slices: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    drain = Drain()
    with pa.ipc.new_stream(drain, schema) as writer:
        for piece in slices:
            writer.write_batch(piece)
            yield drain.emptied()
    yield drain.emptied()


def _parquet(slices: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    drain = Drain()
    with pa.parquet.ParquetWriter(drain, schema, compression="zstd") as writer:
        for piece in slices:
            writer.write_batch(piece)
            yield drain.emptied()
    yield drain.emptied()


_ENCODERS: dict[Format, Callable[[Iterator[pa.RecordBatch], pa.Schema], Iterator[bytes]]] = {
    "json": _json,
    "csv": _csv,
    "arrow": _arrow,
    "parquet": _parquet,
}
