"""Trades by the day, every trade once, in the order of time.

A damaged day does not prevent reading or writing other days.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from collector import logs
from collector.market.symbol import checked_exchange_id
from collector.store import layout
from collector.store.catalogue import folder_symbols
from collector.store.port import Corrupt
from collector.store.trade_day import DayFile, append_rows, day_batches, merge_parts
from collector.store.trade_rows import TRADE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from collector.market.interval import Interval
    from collector.market.trade import Trade
    from collector.store.port import Storage

Damaged = Literal["raise", "skip"]

_NEVER = 2**62
_log = logs.get("collector.store")


def append_trades(
    storage: Storage, exchange_id: str, symbol: str, trades: Iterable[Trade], *, known_at: int
) -> int:
    """Makes trades durable, at the cost of these trades; returns how many were new."""
    by_day: defaultdict[DayFile, list[Trade]] = defaultdict(list)
    for trade in trades:
        by_day[DayFile.at(exchange_id, symbol, trade.ts)].append(trade)
    return sum(
        append_rows(storage, day, _table(by_day[day], known_at))
        for day in sorted(by_day, key=lambda day: day.day)
    )


def settle_trades(storage: Storage, exchange_id: str, until_ms: int) -> int:
    """Merges the parts of every day that had ended by then; returns how many there were."""
    return sum(
        merge_parts(storage, day)
        for symbol in folder_symbols(storage, checked_exchange_id(exchange_id))
        for day in _days_of_parts(storage, exchange_id, symbol)
        if day.interval.to_ms <= until_ms
    )


def trade_days(storage: Storage, exchange_id: str, symbol: str) -> tuple[Interval, ...]:
    """The days (UTC) that have trades, ascending. ValueError for names that nothing can have."""
    return tuple(day.interval for day in _days(storage, exchange_id, symbol))


def trade_symbols(storage: Storage, exchange_id: str) -> tuple[str, ...]:
    """The symbols of an exchange that have trades, in order."""
    found = folder_symbols(storage, checked_exchange_id(exchange_id))
    return tuple(sorted(each for each in found if _days(storage, exchange_id, each)))


def trade_batches(
    storage: Storage,
    exchange_id: str,
    symbol: str,
    from_ms: int | None = None,
    to_ms: int | None = None,
    *,
    damaged: Damaged = "raise",
) -> Iterator[pa.RecordBatch]:
    """The trades of `[from_ms, to_ms)` in order, as TRADE_SCHEMA; either end may be left out.

    Memory holds the compressed file of one day, its parts, and one batch, whatever the range.
    Raises Corrupt when a damaged day is reached; with `damaged="skip"` that day ends there, which
    is logged, and the next one follows.
    """
    first = 0 if from_ms is None else from_ms
    end = _NEVER if to_ms is None else to_ms
    for day in _days(storage, exchange_id, symbol):
        if day.interval.from_ms < end and first < day.interval.to_ms:
            try:
                for batch in day_batches(storage, day):
                    ts = batch["ts"]
                    yield batch.filter(pc.and_(pc.greater_equal(ts, first), pc.less(ts, end)))
            except Corrupt as error:
                if damaged == "raise":
                    raise
                _log.error("trades_damaged", path=error.path, why=error.why)


def read_trades(
    storage: Storage, exchange_id: str, symbol: str, from_ms: int, to_ms: int
) -> pa.Table:
    """The same, as one table."""
    batches = trade_batches(storage, exchange_id, symbol, from_ms, to_ms)
    return pa.Table.from_batches(batches, TRADE_SCHEMA)


def _table(trades: Sequence[Trade], known_at: int) -> pa.Table:
    once: dict[str, Trade] = {}
    for trade in trades:
        once.setdefault(trade.id, trade)
    rows = [
        (each.id, each.ts, each.price, each.amount, each.side, known_at) for each in once.values()
    ]
    columns = zip(*rows, strict=True)
    return pa.table(list(map(list, columns)), schema=TRADE_SCHEMA)


def _days(storage: Storage, exchange_id: str, symbol: str) -> list[DayFile]:
    folder = layout.trades_folder(exchange_id, symbol)
    # Parts first: what is merged meanwhile is then found in a file.
    days = _days_of_parts(storage, exchange_id, symbol)
    names = (name for name in storage.names(folder) if name.endswith(".parquet"))
    stems = (name.removesuffix(".parquet") for name in names)
    days |= {DayFile(exchange_id, symbol, stem) for stem in stems if _is_day(stem)}
    return sorted(days, key=lambda day: day.day)


def _days_of_parts(storage: Storage, exchange_id: str, symbol: str) -> set[DayFile]:
    folder = layout.trade_parts_folder(exchange_id, symbol)
    parts = (layout.parse_part(folder, name) for name in storage.names(folder))
    starts = (part.hull.from_ms for part in parts if part is not None)
    return {DayFile.at(exchange_id, symbol, start) for start in starts}


def _is_day(name: str) -> bool:
    """Whether a file of this name is ours."""
    try:
        return datetime.strptime(name, "%Y-%m-%d").date().isoformat() == name
    except ValueError:
        return False
