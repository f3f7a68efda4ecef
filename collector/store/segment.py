"""How bars are stored in a Parquet file: one schema and one set of encodings for every file of the
store.

Measured on real bars (docs/adr/0011): without a dictionary prices shrink best as plain doubles,
volume and turnover a little better split by bytes; whole numbers are stored as differences.
"""

from __future__ import annotations

import functools
import io
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.extra import extra_columns
from collector.market.labels import Labels
from collector.pipeline.fold import Sightings, Versions
from collector.store import footer as footers
from collector.store.checksum import check_bytes
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from numpy.typing import NDArray

    from collector.market.series import Series
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
"""In a part that holds many series, each row names its series."""


def schema_of(series: Series) -> pa.Schema:
    """SEGMENT_SCHEMA, and behind it the further columns of the series."""
    return _further(SEGMENT_SCHEMA, series.extra)


def names_of(series: Series) -> list[str]:
    """The columns of the series' files."""
    return [*SEGMENT_SCHEMA.names, *series.extra]


def group_schema(exchange_id: str) -> pa.Schema:
    """GROUP_SCHEMA with the further columns of an exchange."""
    return _further(GROUP_SCHEMA, extra_columns(exchange_id))


def _further(schema: pa.Schema, extra: Sequence[str]) -> pa.Schema:
    return pa.schema([*schema, *(pa.field(name, pa.float64()) for name in extra)])


ROWS_PER_GROUP = 22_320
"""Half a month of minutes; docs/adr/0011 explains the choice."""

LASTING = MappingProxyType({"compression": "zstd", "compression_level": 7})
PASSING = MappingProxyType({"compression": "lz4"})
"""For what is merged or written again soon: three quarters of the time of zstd at level 1, and a
fifth larger."""


def writing(
    sink: Any, schema: pa.Schema, effort: Mapping[str, Any] = LASTING
) -> AbstractContextManager[pq.ParquetWriter]:
    """A writer with the store's encodings, closed at the end. `sink` outlives it."""
    return footers.writing(
        sink,
        schema,
        **effort,
        use_dictionary=["symbol", "tf", "ver", "source", "gap_reason"],
        column_encoding={
            "ts": "DELTA_BINARY_PACKED",
            "known_at": "DELTA_BINARY_PACKED",
            "seen_at": "DELTA_BINARY_PACKED",
            "v": "BYTE_STREAM_SPLIT",
            "t": "BYTE_STREAM_SPLIT",
        },
        # Only columns that readers skip by: statistics of prices make footers twice as long.
        write_statistics=["symbol", "tf", "ts", "known_at"],
    )


def encode(table: pa.Table, metadata: dict[str, str], effort: Mapping[str, Any] = LASTING) -> bytes:
    """A small file in memory."""
    sink = io.BytesIO()
    with writing(sink, table.schema, effort) as out:
        if len(table):
            out.write_table(table, row_group_size=ROWS_PER_GROUP)
        footers.close(out, sink, metadata)
    return sink.getvalue()


def to_table(
    versions: Versions, extra: Sequence[str], fillers: NDArray[np.bool_] | None = None
) -> pa.Table:
    """Rows of the store as SEGMENT_SCHEMA, and the `extra` columns behind it.

    The `fillers` among them have no known_at and seen_at.
    """
    rows = versions.rows
    table = rows.batch.to_arrow(rows.source.to_arrow(), versions.ver, extra)
    moments = [pa.array(each, mask=fillers) for each in (rows.known_at, rows.seen_at)]
    return with_moments(table, moments)


def with_moments(table: pa.Table, moments: Sequence[pa.Array]) -> pa.Table:
    """A table of candles as SEGMENT_SCHEMA: known_at and seen_at come before further columns."""
    public = len(CANDLE_SCHEMA)
    columns = [*table.columns[:public], *moments, *table.columns[public:]]
    return pa.Table.from_arrays(
        columns, schema=_further(SEGMENT_SCHEMA, table.schema.names[public:])
    )


def from_table(table: pa.Table) -> Versions:
    """The bars of a SEGMENT_SCHEMA table, with its further columns; fillers are left out."""
    known = table["known_at"]
    if known.null_count:
        table = table.filter(known.is_valid())
    rows = Sightings(
        CandleBatch.from_arrow(table, extra_in(table.schema)),
        table["known_at"].to_numpy(),
        table["seen_at"].to_numpy(),
        Labels.from_arrow(table["source"]),
    )
    return Versions(rows, table["ver"].to_numpy())


def extra_in(schema: pa.Schema) -> list[str]:
    """The further columns of a table or a file."""
    return [name for name in schema.names if name not in GROUP_SCHEMA.names]


class Segment:
    """One file of bars, open for reading. The caller closes it."""

    def __init__(
        self,
        path: str,
        file: Any,
        footer: pq.FileMetaData | None = None,
        whose: Mapping[str, str] = MappingProxyType({}),
        doubtful: Callable[[], None] = lambda: None,
    ) -> None:
        """Takes `file` over. A `footer` that is known already has been checked before.

        `doubtful` is called before a footer is parsed that cannot be checked by itself.
        """
        self.path = path
        self._file = file
        try:
            self.raw_footer = self._checked(whose, doubtful) if footer is None else footer
            self._parquet = pq.ParquetFile(
                file, metadata=self.raw_footer, pre_buffer=False, page_checksum_verification=True
            )
            # The footer's schema and the footer reference each other, so neither would be freed.
            self._places = _places(path, self._parquet.schema_arrow)
            self.extra = extra_in(self._parquet.schema_arrow)
        except footers.DAMAGE as error:
            file.close()
            raise footers.damage(path, error) from error
        except BaseException:
            file.close()
            raise
        self.rows: int = self.raw_footer.num_rows
        self.groups: int = self.raw_footer.num_row_groups

    @classmethod
    def open(
        cls,
        storage: Storage,
        path: str,
        footer: pq.FileMetaData | None = None,
        whose: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Raises Vanished when there is no such file, and Corrupt when it is damaged or holds other
        rows than `whose` names.
        """
        doubtful = functools.partial(check_bytes, storage, path)
        return cls(path, storage.open(path), footer, whose, doubtful)

    def _checked(self, whose: Mapping[str, str], doubtful: Callable[[], None]) -> pq.FileMetaData:
        footer = footers.read_footer(self.path, self._file, doubtful)
        footers.check_identity(self.path, footer, whose)
        return footer

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

    def latest_known_at(self) -> int:
        """When the newest version in the file was known; 0 when it holds fillers only."""
        found = (self._statistics(group, "known_at") for group in range(self.groups))
        return max(
            (int(each.max) for each in found if each is not None and each.has_min_max), default=0
        )

    def read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Every row of these groups. Raises Corrupt when there are fewer than in the footer.

        Columns that came into use after the file was written are null.
        """
        held = [name for name in columns if name in self._places]
        # Handing a short read to other threads takes longer than the read.
        threads = self.rows >= ROWS_PER_GROUP
        try:
            table = self._parquet.read_row_groups(list(groups), columns=held, use_threads=threads)
        except footers.DAMAGE as error:
            raise footers.damage(self.path, error) from error
        expected = sum(self.rows_in(group) for group in groups)
        if len(table) != expected:
            raise Corrupt(self.path, f"{len(table)} rows where there should be {expected}")
        if len(held) == len(columns):
            return table
        for name in columns:
            if name not in self._places:
                table = table.append_column(name, pa.nulls(len(table), pa.float64()))
        return table.select(list(columns))

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

    def rows_in(self, group: int) -> int:
        return int(self.raw_footer.row_group(group).num_rows)

    def fillers_in(self, group: int) -> int:
        """Rows that were in no answer."""
        return int(self._statistics(group, "known_at").null_count)

    def bounds(self, group: int) -> tuple[int, int]:
        """The first and the last time in a row group."""
        statistics = self._statistics(group, "ts")
        return int(statistics.min), int(statistics.max)

    def _statistics(self, group: int, column: str) -> pq.Statistics:
        return self.raw_footer.row_group(group).column(self._places[column]).statistics


def _places(path: str, schema: pa.Schema) -> dict[str, int]:
    """Where each column is. Raises Corrupt for a table of another kind."""
    found = {each.name: each.type for each in schema}
    if any(found.get(each.name) != each.type for each in SEGMENT_SCHEMA):
        raise Corrupt(path, "it has other columns")
    return {name: at for at, name in enumerate(schema.names)}
