"""`whole/{tf}.parquet`: the bars of a collected timeframe, with those made of minutes beside them.

`{tf}.parquet` of a timeframe that is collected holds what the exchange sent, which may be a short
stretch beside years of minutes. Our readers fill in the rest. This file is for tools that open
files: it has every row of such a read, as of the last compaction.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.market.candles import candle_schema
from collector.store import footer as footers
from collector.store import layout
from collector.store.port import Corrupt
from collector.store.segment import ROWS_PER_GROUP, extra_in
from collector.store.signature import DataHash, build_signature

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.store.port import Storage
    from collector.store.reading import SeriesReading

_END_OF_TIME = 2**52
_EFFORT = 7


def write_whole(storage: Storage, reading: SeriesReading, now_ms: int) -> None:
    """Replaces the file. Raises Swapped when another process has just done so."""
    series = reading.series
    path = layout.whole_path(series)
    expected, digest = storage.stamp(path), DataHash(series.extra)
    with ExitStack() as stack:
        draft = stack.enter_context(storage.draft(path))
        out = stack.enter_context(
            footers.writing(draft.sink, candle_schema(series.extra), compression_level=_EFFORT)
        )
        for table in reading.tables(0, _END_OF_TIME):
            out.write_table(table, row_group_size=ROWS_PER_GROUP)
            digest.update(table)
            draft.checkpoint()
        metadata = {
            **footers.identity("whole", series),
            "data_hash": digest.hexdigest(),
            "build_signature": build_signature(),
            "source": series.exchange_id,
            "generated_at": datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(),
        }
        footers.close(out, draft.sink, metadata)
        draft.finish()
        draft.commit(expected)


def check_whole(storage: Storage, series: Series) -> None:
    """Reads all of the file. Raises Vanished, and Corrupt when it is damaged."""
    path = layout.whole_path(series)
    identity = footers.identity("whole", series)
    file = footers.open_bytes(path, storage.read(path), identity)
    extra = extra_in(file.schema_arrow)
    digest = DataHash(extra)
    try:
        for batch in file.iter_batches(ROWS_PER_GROUP):
            digest.update(pa.Table.from_batches([batch]).cast(candle_schema(extra)))
    except footers.DAMAGE as error:
        raise footers.damage(path, error) from error
    stored = (file.metadata.metadata or {}).get(b"data_hash", b"").decode()
    if stored != digest.hexdigest():
        raise Corrupt(path, "its rows do not have their hash")
