"""How bars lie in a Parquet file: one schema and one set of encodings for every file of the store.

Measured on real bars (docs/adr/0011): without a dictionary prices shrink best as plain doubles,
volume and turnover a little better split by bytes; whole numbers are stored as differences.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.pipeline.fold import Sightings, Versions
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from collector.store.port import Storage

SEGMENT_SCHEMA = pa.schema(
    [*CANDLE_SCHEMA, pa.field("known_at", pa.int64()), pa.field("seen_at", pa.int64())]
)
"""The public columns, and when this version of the bar was first and last seen (null: a filler)."""

GROUP_SCHEMA = pa.schema(
    [
        pa.field("symbol", pa.string(), nullable=False),
        pa.field("tf", pa.string(), nullable=False),
        *SEGMENT_SCHEMA,
    ]
)
"""A part that holds many series says of each row which one it belongs to."""

ROWS_PER_GROUP = 22_320
"""Half a month of minutes. docs/adr/0011 says why it is not the seed's 256K."""

_DAMAGE = (pa.ArrowException, OSError, EOFError, KeyError, ValueError)


LASTING, PASSING = 7, 1
"""How hard zstd tries. What will be merged soon is written three times as fast, 1% larger."""


@contextlib.contextmanager
def writing(sink: Any, schema: pa.Schema, effort: int = LASTING) -> Iterator[pq.ParquetWriter]:
    """A writer with the store's encodings, closed at the end. `sink` outlives it."""
    out = pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=effort,
        use_dictionary=["symbol", "tf", "ver", "source", "gap_reason"],
        column_encoding={
            "ts": "DELTA_BINARY_PACKED",
            "known_at": "DELTA_BINARY_PACKED",
            "seen_at": "DELTA_BINARY_PACKED",
            "v": "BYTE_STREAM_SPLIT",
            "t": "BYTE_STREAM_SPLIT",
        },
        # Only what a reader skips by: statistics of prices make footers twice as long.
        write_statistics=["symbol", "tf", "ts", "known_at"],
        write_page_checksum=True,
    )
    try:
        yield out
        out.close()
    except BaseException:
        # Nobody will read this file. What must not happen is that the garbage collector closes
        # the writer later, into a file that is gone.
        with contextlib.suppress(Exception):
            out.close()
        out.is_open = False
        raise


def encode(table: pa.Table, metadata: dict[str, str], effort: int = LASTING) -> bytes:
    """A small file in memory."""
    sink = pa.BufferOutputStream()
    with writing(sink, table.schema, effort) as out:
        if len(table):
            out.write_table(table, row_group_size=ROWS_PER_GROUP)
        out.add_key_value_metadata(metadata)
    return bytes(sink.getvalue())


def to_table(versions: Versions, fillers: NDArray[np.bool_] | None = None) -> pa.Table:
    """Rows of the store as SEGMENT_SCHEMA. Nobody ever saw the `fillers` among them."""
    rows = versions.rows
    source = pa.array(rows.source, type=pa.string())
    table = rows.batch.to_arrow(source, versions.ver)
    moments = [pa.array(each, mask=fillers) for each in (rows.known_at, rows.seen_at)]
    columns = [*table.columns, *moments]
    return pa.Table.from_arrays(columns, schema=SEGMENT_SCHEMA)


def from_table(table: pa.Table) -> Versions:
    """The bars of a SEGMENT_SCHEMA table; its fillers are left out."""
    known = table["known_at"]
    if known.null_count:
        table = table.filter(known.is_valid())
    bars = np.ones(len(table), dtype=np.bool_)
    rows = Sightings(
        CandleBatch.from_arrow(table, bars),
        table["known_at"].to_numpy(),
        table["seen_at"].to_numpy(),
        table["source"].to_numpy(),
    )
    return Versions(rows, table["ver"].to_numpy())


class Segment:
    """One file of bars, open for reading. Closing it is the caller's business."""

    def __init__(self, path: str, file: Any, footer: pq.FileMetaData | None = None) -> None:
        """Takes `file` over, and its footer from there unless it is known already."""
        self.path = path
        self._file = file
        try:
            self._parquet = pq.ParquetFile(
                self._file, metadata=footer, pre_buffer=False, page_checksum_verification=True
            )
        except _DAMAGE as error:
            self._file.close()
            raise Corrupt(path, error) from error
        self.raw_footer: pq.FileMetaData = self._parquet.metadata
        self.rows: int = self._parquet.metadata.num_rows
        self.groups: int = self._parquet.metadata.num_row_groups
        # The footer's own schema and the footer hold each other: nobody would free either.
        names = self._parquet.schema_arrow.names
        self._places = {name: at for at, name in enumerate(names)}

    @classmethod
    def open(cls, storage: Storage, path: str, footer: pq.FileMetaData | None = None) -> Self:
        """Raises Vanished when there is no such file and Corrupt when it cannot be read."""
        return cls(path, storage.open(path), footer)

    def close(self) -> None:
        self._parquet.close()
        self._file.close()

    def metadata(self, key: str) -> str:
        """A value of the footer; empty when it is not there."""
        found = self._parquet.metadata.metadata or {}
        return str(found.get(key.encode(), b"").decode())

    def overlapping(self, from_ms: int, to_ms: int) -> list[int]:
        """The row groups that may hold times in `[from_ms, to_ms)`; rows ascend."""
        low, high = 0, self.groups
        while low < high:
            middle = (low + high) // 2
            if self.bounds(middle)[1] < from_ms:
                low = middle + 1
            else:
                high = middle
        end = low
        while end < self.groups and self.bounds(end)[0] < to_ms:
            end += 1
        return list(range(low, end))

    def earliest_known_at(self, group: int) -> int | None:
        """When the oldest version in a row group was known; None when it holds fillers only."""
        statistics = self._statistics(group, "known_at")
        return int(statistics.min) if statistics is not None and statistics.has_min_max else None

    def read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        # Handing a short read to other threads takes longer than the read.
        threads = self.rows >= ROWS_PER_GROUP
        try:
            return self._parquet.read_row_groups(
                list(groups), columns=list(columns), use_threads=threads
            )
        except _DAMAGE as error:
            raise Corrupt(self.path, error) from error

    def between(
        self,
        from_ms: int,
        to_ms: int,
        columns: Sequence[str],
        groups: Sequence[int] | None = None,
    ) -> pa.Table:
        """The rows of `[from_ms, to_ms)`, or of those `groups` alone. `columns` has ts in it."""
        near = self.overlapping(from_ms, to_ms) if groups is None else groups
        table = self.read(near, columns)
        start, end = np.searchsorted(table["ts"].to_numpy(), [from_ms, to_ms]).tolist()
        return table.slice(start, end - start)

    def bounds(self, group: int) -> tuple[int, int]:
        """The first and the last time in a row group."""
        statistics = self._statistics(group, "ts")
        return int(statistics.min), int(statistics.max)

    def _statistics(self, group: int, column: str) -> pq.Statistics:
        return self.raw_footer.row_group(group).column(self._places[column]).statistics
