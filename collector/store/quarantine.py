"""Rows that were refused, kept for whoever wants to know why a bar is missing.

A file is named by what is in it, so the same rows refused again make no second file. Columns: `tf`,
`ts` (null when the time cannot be read), `reason`, `code` (E_SCHEMA), `row` (JSON, as it came),
`known_at`, `fence`.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from collector.store import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.series import Series
    from collector.pipeline.normalize import Rejected
    from collector.store.port import Storage

QUARANTINE_SCHEMA = pa.schema(
    [
        ("tf", pa.string()),
        ("ts", pa.int64()),
        ("reason", pa.string()),
        ("code", pa.string()),
        ("row", pa.string()),
        ("known_at", pa.int64()),
        ("fence", pa.int64()),
    ]
)


def quarantine(
    storage: Storage, series: Series, rejected: Sequence[Rejected], fence: int, known_at: int
) -> str | None:
    """Makes the rejected rows durable; returns the file's path, None when there were no rows."""
    if not rejected:
        return None
    rows = [
        {
            "tf": series.timeframe.name,
            "ts": each.ts,
            "reason": each.reason,
            "code": "E_SCHEMA",
            "row": _json(each.row),
            "known_at": known_at,
            "fence": fence,
        }
        for each in rejected
    ]
    told = orjson.dumps([(row["ts"], row["reason"], row["row"]) for row in rows])
    name = f"{series.timeframe}-{hashlib.sha256(told).hexdigest()[:24]}.parquet"
    folder = layout.quarantine_folder(series)
    path = f"{folder}/{name}"
    if storage.stamp(path) is None:
        sink = pa.BufferOutputStream()
        pq.write_table(
            pa.Table.from_pylist(rows, schema=QUARANTINE_SCHEMA),
            sink,
            compression="zstd",
            compression_level=7,
        )
        storage.write_atomic(path, bytes(sink.getvalue()))
    return path


def quarantined(storage: Storage, series: Series) -> pa.Table:
    """Every row of the series that was refused, as QUARANTINE_SCHEMA."""
    folder = layout.quarantine_folder(series)
    prefix = f"{series.timeframe}-"
    names = [name for name in storage.names(folder) if name.startswith(prefix)]
    tables = [pq.read_table(pa.BufferReader(storage.read(f"{folder}/{name}"))) for name in names]
    return pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *tables])


def _json(row: tuple[object, ...]) -> str:
    """The row as it came: what JSON has no word for is told as text."""
    return orjson.dumps([_plain(value) for value in row], default=repr).decode()


def _plain(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return repr(value)
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value
