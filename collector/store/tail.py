"""`tail/{tf}.tail.parquet`: the last days of a series, quick to read.

A cache: everything in it is in the sealed file or in parts as well, and our own readers do not need
it. It is for tools that open files and want the newest bars without the whole history's footer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from collector.durations import DAY_MS
from collector.store import layout
from collector.store.footer import identity
from collector.store.segment import PASSING, encode, schema_of
from collector.store.signature import DataHash, build_signature

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.store.port import Storage


class Tail:
    """Keeps the last days of the rows that pass through."""

    def __init__(self, series: Series, days: int) -> None:
        self._series = series
        self.span_ms = days * DAY_MS
        self._kept: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """The next rows of the calendar, ascending, as SEGMENT_SCHEMA."""
        last = int(table["ts"][-1].as_py())
        start = last + self._series.timeframe.ms - self.span_ms
        kept = (_behind(each, start) for each in (*self._kept, table))
        self._kept = [each for each in kept if len(each)]

    def put(self, storage: Storage, now_ms: int) -> None:
        """Replaces the file."""
        table = pa.concat_tables([schema_of(self._series).empty_table(), *self._kept])
        digest = DataHash(self._series.extra)
        digest.update(table)
        metadata = {
            **identity("tail", self._series),
            "data_hash": digest.hexdigest(),
            "build_signature": build_signature(),
            "source": self._series.exchange_id,
            "generated_at": datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(),
        }
        storage.write_atomic(layout.tail_path(self._series), encode(table, metadata, PASSING))


def _behind(table: pa.Table, start_ms: int) -> pa.Table:
    """The rows from `start_ms` on."""
    return table.slice(int(np.searchsorted(table["ts"].to_numpy(), start_ms)))
