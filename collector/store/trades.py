"""Trades by the day: one Parquet file for each, every trade once.

A day's file is read, merged with what is new, and replaced whole. Whoever was overtaken meanwhile
starts again with the newer file, so that no trade is lost and none is there twice, whatever crashed
or was asked for a second time. A trade never changes: the first telling of an id stays. Rows are in
the order of time; within a millisecond the shorter id goes first, which is the order of numbers.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector.store import layout
from collector.store.port import Corrupt, Swapped, Vanished
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
_ATTEMPTS = 5


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


def read_trades(
    storage: Storage, exchange_id: str, symbol: str, from_ms: int, to_ms: int
) -> pa.Table:
    """The trades of `[from_ms, to_ms)` in order, as TRADE_SCHEMA."""
    folder = layout.trades_folder(exchange_id, symbol)
    there = set(storage.names(folder))
    wanted = [f"{folder}/{day}.parquet" for day in _days(from_ms, to_ms)]
    found = [path for path in wanted if path.rpartition("/")[2] in there]
    tables = [_kept(_read(storage, path), from_ms, to_ms) for path in found]
    return pa.concat_tables([TRADE_SCHEMA.empty_table(), *tables])


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
        pq.write_table(merged, draft.sink, compression="zstd", compression_level=7)
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


def _kept(table: pa.Table, from_ms: int, to_ms: int) -> pa.Table:
    inside = pc.and_(pc.greater_equal(table["ts"], from_ms), pc.less(table["ts"], to_ms))
    return table.filter(inside)


def _days(from_ms: int, to_ms: int) -> list[str]:
    if to_ms <= from_ms:
        return []
    first = datetime.fromtimestamp(from_ms / 1000, UTC).date()
    last = datetime.fromtimestamp((to_ms - 1) / 1000, UTC).date()
    return [(first + timedelta(n)).isoformat() for n in range((last - first).days + 1)]


def _day(ts: int) -> str:
    return datetime.fromtimestamp(ts / 1000, UTC).date().isoformat()
