"""The trades of one market on one day: one file, and the parts that came since.

An append writes one small part, and reads only the affected time of the day. Parts are merged into
the day's file when there is none yet, when there are many of them, or when they hold an eighth of
what it holds: so each trade is written some ten times at most, however large the day becomes.

Parts are listed before the file is opened. When a part has been merged and deleted meanwhile, the
reader looks again; a trade that lies in both counts once. A crash leaves the parts, or both.
Nothing is ever merged into a file that is damaged, and appends go on beside it.
"""

from __future__ import annotations

import contextlib
import io
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector import logs
from collector.durations import DAY_MS
from collector.market.interval import Interval
from collector.store import footer as footers
from collector.store import layout
from collector.store.port import Corrupt, Swapped, Unavailable, Vanished
from collector.store.signature import build_signature
from collector.store.trade_rows import ROWS_PER_BATCH, TRADE_SCHEMA, in_order, merged, once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.store.layout import PartName
    from collector.store.port import Storage

FEW_PARTS, MANY_PARTS = 8, 256
SHARE = 8
"""Parts are merged when a few of them hold an eighth of the day, or when there are many, because a
reader opens each of them.
"""

_LOOKS = 50
_LASTING, _PASSING = 7, 1
"""How hard files and parts are compressed."""
_log = logs.get("collector.store")


@dataclass(frozen=True, slots=True)
class DayFile:
    """The trades of one market on one day (UTC, as in 2024-10-04)."""

    exchange_id: str
    symbol: str
    day: str

    @classmethod
    def at(cls, exchange_id: str, symbol: str, ts: int) -> DayFile:
        """The file of the day in which `ts` is."""
        return cls(exchange_id, symbol, datetime.fromtimestamp(ts / 1000, UTC).date().isoformat())

    @property
    def path(self) -> str:
        return layout.trades_path(self.exchange_id, self.symbol, self.day)

    @property
    def parts_folder(self) -> str:
        """Where the parts of all days of the market are."""
        return layout.trade_parts_folder(self.exchange_id, self.symbol)

    @property
    def interval(self) -> Interval:
        from_ms = int(datetime.fromisoformat(f"{self.day}T00:00:00+00:00").timestamp()) * 1000
        return Interval(from_ms, from_ms + DAY_MS)

    def identity(self) -> dict[str, str]:
        """What the footers of its files record."""
        exchange, symbol = self.exchange_id, self.symbol
        return {"kind": "trades", "exchange": exchange, "symbol": symbol, "day": self.day}


def append_rows(storage: Storage, day: DayFile, rows: pa.Table) -> int:
    """Makes rows of TRADE_SCHEMA durable, all of this day; returns how many were new."""
    ts = rows["ts"]
    hull = Interval(pc.min(ts).as_py(), pc.max(ts).as_py() + 1)
    known = _ids_between(storage, day, hull)
    fresh = in_order(rows.filter(pc.invert(pc.is_in(rows["id"], value_set=known))))
    if not len(fresh):
        return 0
    data = _encoded(day, fresh)
    ts = fresh["ts"]
    inside = Interval(ts[0].as_py(), ts[-1].as_py() + 1)
    unique = secrets.token_hex(8)
    storage.write_atomic(layout.part_path(day.parts_folder, inside, len(fresh), unique, data), data)
    if _is_due(storage, day):
        merge_parts(storage, day)
    return len(fresh)


def day_batches(storage: Storage, day: DayFile) -> Iterator[pa.RecordBatch]:
    """The trades of one day in order, each once. Raises Corrupt when a file of it is damaged."""
    for _ in range(_LOOKS):
        try:
            tables = [read_day_part(storage, day, part) for part in day_parts(storage, day)]
            # Read whole, so that a day that is replaced meanwhile does not change half-way.
            data = None if storage.stamp(day.path) is None else storage.read(day.path)
            break
        except Vanished:
            continue
    else:
        raise Unavailable(f"{day.path}: parts keep vanishing")
    file = () if data is None else file_batches(day, data)
    if not tables:
        yield from file
        return
    yield from merged(file, once(pa.concat_tables(tables)))


def file_batches(day: DayFile, data: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of the day's own file. Raises Corrupt."""
    file = footers.open_bytes(day.path, data, day.identity())
    rows = 0
    try:
        for batch in file.iter_batches(ROWS_PER_BATCH):
            rows += len(batch)
            yield batch.cast(TRADE_SCHEMA)
    except footers.DAMAGE as error:
        raise footers.damage(day.path, error) from error
    if rows != file.metadata.num_rows:
        raise Corrupt(day.path, f"{rows} trades where there should be {file.metadata.num_rows}")


def sound_trades(storage: Storage, day: DayFile) -> pa.Table:
    """What can still be read of a damaged day: the row groups whose pages are intact."""
    tables = [TRADE_SCHEMA.empty_table()]
    with contextlib.suppress(Corrupt, Vanished):
        file = footers.open_bytes(day.path, storage.read(day.path), day.identity())
        for group in range(file.num_row_groups):
            with contextlib.suppress(*footers.DAMAGE):
                tables.append(file.read_row_group(group).cast(TRADE_SCHEMA))
    return pa.concat_tables(tables)


def merge_parts(storage: Storage, day: DayFile) -> int:
    """Merges all parts into the day's file; returns how many there were.

    When another process is faster, the work is left to it. A damaged part is set aside; with a
    damaged file nothing is changed. Both are logged.
    """
    parts = day_parts(storage, day)
    if not parts:
        return 0
    expected = storage.stamp(day.path)
    try:
        batches = () if expected is None else file_batches(day, storage.read(day.path))
        kept = pa.Table.from_batches(batches, TRADE_SCHEMA)
        tables = [kept, *(_sound(storage, day, part) for part in parts)]
        _replace(storage, day, once(pa.concat_tables(tables)), expected)
    except (Swapped, Vanished):
        return 0
    except Corrupt as error:
        _log.error("trades_damaged", path=error.path, why=error.why)
        return 0
    for part in parts:
        storage.delete(part.path)
    return len(parts)


def _is_due(storage: Storage, day: DayFile) -> bool:
    parts = day_parts(storage, day)
    if len(parts) < FEW_PARTS:
        return storage.stamp(day.path) is None
    try:
        file = _opened(storage, day)
    except Corrupt as error:
        _log.error("trades_damaged", path=error.path, why=error.why)
        return False
    except Vanished:
        return False  # Replaced just now: another process is merging.
    held = 0 if file is None else file.metadata.num_rows
    return len(parts) >= MANY_PARTS or sum(map(_rows_in, parts)) * SHARE >= held


def _ids_between(storage: Storage, day: DayFile, hull: Interval) -> pa.Array:
    """The ids that are stored with a time in `hull`; none of a damaged file, which is logged.

    An id that is overlooked is stored twice, and counts once when it is read.
    """
    parts = [part for part in day_parts(storage, day) if part.touches(hull.from_ms, hull.to_ms)]
    found = []
    for part in [*parts, None]:
        try:
            ids = _file_ids(storage, day, hull) if part is None else _part_ids(storage, day, part)
            found += ids.chunks
        except Vanished:
            continue  # Merged a moment ago: the file has them, which is looked at last.
        except Corrupt as error:
            _log.error("trades_damaged", path=error.path, why=error.why)
    return pa.chunked_array(found, pa.string())


def _part_ids(storage: Storage, day: DayFile, part: PartName) -> pa.ChunkedArray:
    return read_day_part(storage, day, part)["id"]


def _file_ids(storage: Storage, day: DayFile, hull: Interval) -> pa.ChunkedArray:
    file = _opened(storage, day)
    if file is None:
        return pa.chunked_array([], pa.string())
    at = file.schema_arrow.names.index("ts")
    groups = []
    for group in range(file.metadata.num_row_groups):
        bounds = file.metadata.row_group(group).column(at).statistics
        if bounds is None or (bounds.min < hull.to_ms and hull.from_ms <= bounds.max):
            groups.append(group)
    try:
        return file.read_row_groups(groups, columns=["id"])["id"]
    except footers.DAMAGE as error:
        raise footers.damage(day.path, error) from error


def _opened(storage: Storage, day: DayFile) -> pq.ParquetFile | None:
    """The day's file, of which little is read; None when there is none. Raises Corrupt."""
    try:
        source = storage.open(day.path)
    except Vanished:
        return None
    footer = footers.read_footer(day.path, source, lambda: None)
    footers.check_identity(day.path, footer, day.identity())
    try:
        return pq.ParquetFile(source, metadata=footer, page_checksum_verification=True)
    except footers.DAMAGE as error:
        raise footers.damage(day.path, error) from error


def day_parts(storage: Storage, day: DayFile) -> list[PartName]:
    folder, whole = day.parts_folder, day.interval
    named = (layout.parse_part(folder, name) for name in storage.names(folder))
    return [part for part in named if part is not None and part.touches(whole.from_ms, whole.to_ms)]


def _rows_in(part: PartName) -> int:
    """A part of trades has their number in its name."""
    return int(part.name.split("-")[2])


def read_day_part(storage: Storage, day: DayFile, part: PartName) -> pa.Table:
    """Raises Vanished or Corrupt."""
    data = storage.read(part.path)
    if not layout.is_whole(part.path, data):
        raise Corrupt(part.path, "it is not what was written")
    file = footers.open_bytes(part.path, data, day.identity())
    try:
        return file.read().cast(TRADE_SCHEMA)
    except footers.DAMAGE as error:
        raise footers.damage(part.path, error) from error


def _sound(storage: Storage, day: DayFile, part: PartName) -> pa.Table:
    """The rows of a part; none of a damaged one, which is set aside."""
    try:
        return read_day_part(storage, day, part)
    except Corrupt as error:
        _log.error("trades_damaged", path=storage.set_aside(part.path), why=error.why)
        return TRADE_SCHEMA.empty_table()


def _replace(storage: Storage, day: DayFile, rows: pa.Table, expected: str | None) -> None:
    with storage.draft(day.path) as draft:
        _write(day, rows, draft.sink, _LASTING)
        draft.finish()
        draft.commit(expected)


def _encoded(day: DayFile, rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    _write(day, rows, sink, _PASSING)
    return sink.getvalue()


def _write(day: DayFile, rows: pa.Table, sink: Any, effort: int) -> None:
    metadata = {**day.identity(), "build_signature": build_signature()}
    with footers.writing(sink, TRADE_SCHEMA, compression_level=effort) as out:
        out.write_table(rows, row_group_size=ROWS_PER_BATCH)
        footers.close(out, sink, metadata)
