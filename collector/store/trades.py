"""Trades by the day: one Parquet file for each, every trade once.

A day's file is read, merged with what is new, and replaced whole. Whoever was overtaken meanwhile
starts again with the newer file, so that no trade is lost and none is there twice, whatever crashed
or was asked for a second time. A trade never changes: the first telling of an id stays. Rows are in
the order of time; within a millisecond the shorter id goes first, which is the order of numbers.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector.market.interval import Interval
from collector.market.symbol import checked_exchange_id, name_to_symbol
from collector.store import layout
from collector.store.port import Corrupt, Swapped, Vanished
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from collector.market.trade import Trade
    from collector.store.port import Storage

TRADE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("price", pa.float64(), nullable=False),
        pa.field("amount", pa.float64(), nullable=False),
        pa.field("side", pa.string()),
        pa.field("known_at", pa.int64(), nullable=False),
    ]
)
ROWS_PER_BATCH = 65_536
"""Rows of a row group, which is unpacked at a time: some 4 MB."""

_ATTEMPTS = 5
_DAY_MS = 86_400_000
_NEVER = 2**62


def append_trades(
    storage: Storage, exchange_id: str, symbol: str, trades: Iterable[Trade], *, known_at: int
) -> int:
    """Makes trades durable; returns how many were new.

    Raises Swapped when others kept replacing the same day: the same again, later.
    """
    by_day: defaultdict[str, list[Trade]] = defaultdict(list)
    for trade in trades:
        by_day[_day(trade.ts)].append(trade)
    return sum(
        _merge(storage, layout.trades_path(exchange_id, symbol, day), by_day[day], known_at)
        for day in sorted(by_day)
    )


def trade_days(storage: Storage, exchange_id: str, symbol: str) -> tuple[Interval, ...]:
    """The days (UTC) that have a file, ascending. ValueError for names that nothing can have."""
    names = storage.names(layout.trades_folder(exchange_id, symbol))
    return tuple(day for day in map(_day_of, names) if day is not None)


def trade_symbols(storage: Storage, exchange_id: str) -> tuple[str, ...]:
    """The symbols of an exchange that have trades, in order."""
    found = []
    for folder in storage.folders(checked_exchange_id(exchange_id)):
        # Folders that are not ours, whatever they are doing there, are no symbols.
        with contextlib.suppress(ValueError):
            symbol = name_to_symbol(folder)
            if trade_days(storage, exchange_id, symbol):
                found.append(symbol)
    return tuple(sorted(found))


def trade_batches(
    storage: Storage,
    exchange_id: str,
    symbol: str,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The trades of `[from_ms, to_ms)` in order, as TRADE_SCHEMA; either end may be left out.

    In memory is the file of one day as it is packed, and one batch of it, whatever the range.
    """
    first = 0 if from_ms is None else from_ms
    end = _NEVER if to_ms is None else to_ms
    for day in trade_days(storage, exchange_id, symbol):
        if day.from_ms < end and first < day.to_ms:
            path = layout.trades_path(exchange_id, symbol, _day(day.from_ms))
            for batch in _batches(storage, path):
                ts = batch["ts"]
                yield batch.filter(pc.and_(pc.greater_equal(ts, first), pc.less(ts, end)))


def read_trades(
    storage: Storage, exchange_id: str, symbol: str, from_ms: int, to_ms: int
) -> pa.Table:
    """The same, as one table."""
    batches = trade_batches(storage, exchange_id, symbol, from_ms, to_ms)
    return pa.Table.from_batches(batches, TRADE_SCHEMA)


def _merge(storage: Storage, path: str, trades: Sequence[Trade], known_at: int) -> int:
    told = _table(trades, known_at)
    for _ in range(_ATTEMPTS):
        try:
            return _merge_once(storage, path, told)
        except (Swapped, Vanished):
            continue
    raise Swapped(f"{path} keeps being replaced by others")


def _merge_once(storage: Storage, path: str, told: pa.Table) -> int:
    expected = storage.stamp(path)
    kept = TRADE_SCHEMA.empty_table() if expected is None else _read(storage, path)
    fresh = told.filter(pc.invert(pc.is_in(told["id"], value_set=kept["id"])))
    if not len(fresh):
        return 0
    merged = _in_order(pa.concat_tables([kept, fresh]))
    merged = merged.replace_schema_metadata({"build_signature": build_signature()})
    with storage.draft(path) as draft:
        pq.write_table(
            merged,
            draft.sink,
            row_group_size=ROWS_PER_BATCH,
            compression="zstd",
            compression_level=7,
        )
        draft.finish()
        draft.commit(expected)
    return len(fresh)


def _table(trades: Sequence[Trade], known_at: int) -> pa.Table:
    once: dict[str, Trade] = {}
    for trade in trades:
        once.setdefault(trade.id, trade)
    rows = [
        (each.id, each.ts, each.price, each.amount, each.side, known_at) for each in once.values()
    ]
    columns = zip(*rows, strict=True)
    return pa.table(list(map(list, columns)), schema=TRADE_SCHEMA)


def _in_order(table: pa.Table) -> pa.Table:
    keyed = table.append_column("length", pc.utf8_length(table["id"]))
    order = [("ts", "ascending"), ("length", "ascending"), ("id", "ascending")]
    return table.take(pc.sort_indices(keyed, sort_keys=order))


def _read(storage: Storage, path: str) -> pa.Table:
    data = storage.read(path)
    try:
        return pq.read_table(pa.BufferReader(data), schema=TRADE_SCHEMA).replace_schema_metadata()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Corrupt(path, error) from error


def _batches(storage: Storage, path: str) -> Iterator[pa.RecordBatch]:
    # Whole, so that a day that is replaced meanwhile stays the one that was begun.
    data = storage.read(path)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        for batch in file.iter_batches(ROWS_PER_BATCH):
            yield batch.cast(TRADE_SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Corrupt(path, error) from error


def _day_of(name: str) -> Interval | None:
    """The day a file's name tells; None for a file that is not ours."""
    try:
        day = datetime.strptime(name, "%Y-%m-%d.parquet").replace(tzinfo=UTC)
    except ValueError:
        return None
    from_ms = int(day.timestamp()) * 1000
    is_ours = name == f"{_day(from_ms)}.parquet"
    return Interval(from_ms, from_ms + _DAY_MS) if is_ours else None


def _day(ts: int) -> str:
    return datetime.fromtimestamp(ts / 1000, UTC).date().isoformat()
