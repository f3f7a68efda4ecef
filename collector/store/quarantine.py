"""Rows that were refused, kept to explain why a bar is missing.

A file is named by what is in it, so the same rows refused again make no second file. Columns: `tf`,
`ts` (null when the time cannot be read), `reason`, `code` (E_SCHEMA), `row` (JSON, as it came),
`known_at`, `fence`.

An exchange that sends other nonsense every time must not fill the disk with it: a series keeps
MOST_FILES files of MOST_ROWS rows, and what comes after that is counted in the log.
"""

from __future__ import annotations

import hashlib
import io
import math
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from collector import logs
from collector.store import footer as footers
from collector.store import layout
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.market.answer import Rejected
    from collector.market.series import Series
    from collector.store.port import Storage

_log = logs.get("collector.store")
MOST_FILES = 500
MOST_ROWS = 2_000
LONGEST_ROW = 500
"""Characters of one row's JSON; a longer row is kept as a list of its first so many."""
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
    """Makes the rejected rows durable.

    Returns the file's path; None when there were no rows, or there are too many files of them.
    """
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
        for each in rejected[:MOST_ROWS]
    ]
    name = f"{series.timeframe.file_name}-{_digest(rows)}.parquet"
    path = f"{layout.quarantine_folder(series)}/{name}"
    if storage.stamp(path) is not None:
        return path
    is_full = len(quarantine_files(storage, series)) >= MOST_FILES
    left_out = len(rejected) - (0 if is_full else len(rows))
    if left_out:
        _log.warning("quarantine_full", series=str(series), rows=left_out)
    if is_full:
        return None
    storage.write_atomic(path, _encoded(series, rows))
    return path


def quarantined(storage: Storage, series: Series) -> pa.Table:
    """Every row of the series that was refused, as QUARANTINE_SCHEMA. Raises Corrupt."""
    tables = [read_quarantine(storage, series, path) for path in quarantine_files(storage, series)]
    return pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *tables])


def quarantine_files(storage: Storage, series: Series) -> list[str]:
    """The paths of the files with rows of the series that were refused."""
    folder, prefix = layout.quarantine_folder(series), f"{series.timeframe.file_name}-"
    names = (name for name in storage.names(folder) if name.endswith(".parquet"))
    return [f"{folder}/{name}" for name in names if name.startswith(prefix)]


def read_quarantine(storage: Storage, series: Series, path: str) -> pa.Table:
    """One file of refused rows, checked against its name. Raises Vanished or Corrupt."""
    file = footers.open_bytes(path, storage.read(path), footers.whose(series))
    try:
        table = file.read().cast(QUARANTINE_SCHEMA)
    except footers.DAMAGE as error:
        raise footers.damage(path, error) from error
    if not path.endswith(f"-{_digest(table.to_pylist())}.parquet"):
        raise Corrupt(path, "its rows are not those of its name")
    return table


def _encoded(series: Series, rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    with footers.writing(sink, QUARANTINE_SCHEMA, compression_level=7) as out:
        out.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE_SCHEMA))
        footers.close(out, sink, footers.identity("quarantine", series))
    return sink.getvalue()


def _digest(rows: Sequence[Mapping[str, Any]]) -> str:
    content = orjson.dumps([(row["ts"], row["reason"], row["row"]) for row in rows])
    return hashlib.sha256(content).hexdigest()[:24]


def _json(row: tuple[object, ...]) -> str:
    """The row as it came, with values that JSON cannot express as text."""
    text = orjson.dumps([_plain(value) for value in row], default=repr).decode()
    return text if len(text) <= LONGEST_ROW else orjson.dumps([text[:LONGEST_ROW]]).decode()


def _plain(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return repr(value)
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value
