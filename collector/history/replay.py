"""Rows of the ledger into buckets: what a writer does with a batch, and a reader with the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from collector.history import uint256
from collector.history.bucket_columns import BucketColumns
from collector.history.engine import History, PendingChange
from collector.history.fold import fold
from collector.history.ledger import adds
from collector.history.month import month_start
from collector.history.segment import parse_pair, trade_columns
from collector.history.windows import ceil, windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from collector.clock import Clock
    from collector.history.counters import Counters
    from collector.history.ledger import Ledger
    from collector.history.pair import Pair


def follow(
    history: History, since: int, ledger: Ledger, pair: Pair | None = None
) -> Iterator[tuple[int, int]]:
    """Brings buckets that are exact for the sequence `since` to the ledger's head.

    One segment at each step: gives the sequence that the buckets are exact for now, and how many
    rows that took. Of one pair, or of all.
    """
    for last, table in ledger.since(since):
        if pair is not None:
            table = table.filter(_of_pair(table, pair))
        change = PendingChange()
        prepare_rows(history, change, ledger.through(last), table)
        history.commit(change)
        yield last, len(table)


def prepare_rows(
    history: History,
    change: PendingChange,
    ledger: Ledger,
    rows: pa.Table,
    counters: Counters | None = None,
    clock: Clock | None = None,
) -> None:
    """Puts rows that came after all others into a change.

    `ledger` ends with them. A bucket that lost a trade is rebuilt, once, and the others grow.
    """
    is_add = adds(rows)
    if is_add.all():
        history.prepare(change, trade_columns(rows))
        return
    begins = rows["ts"].to_numpy() // history.bucket_ms * history.bucket_ms
    pairs = rows["pair"].to_pylist()
    dirty: dict[int, set[str]] = {}
    for row in np.flatnonzero(~is_add).tolist():
        dirty.setdefault(int(begins[row]), set()).add(pairs[row])
    grown = [
        int(begins[row]) not in dirty or pairs[row] not in dirty[int(begins[row])]
        for row in range(len(rows))
    ]
    history.prepare(change, trade_columns(rows.filter(is_add & np.array(grown))))
    for ts in sorted(dirty):
        started = clock.monotonic() if clock is not None else 0.0
        history.prepare_rebuild(change, ledger, ts, [parse_pair(each) for each in dirty[ts]])
        if counters is not None and clock is not None:
            counters.rebuilt(clock.monotonic() - started, len(dirty[ts]))
    change.last_prices |= _last_removed(rows.filter(~is_add))


def month_of_ledger(ledger: Ledger, month: int, bucket_ms: int) -> dict[Pair, BucketColumns]:
    """The buckets that begin in a month, by pair, made from what the ledger has."""
    parts: dict[Pair, list[BucketColumns]] = {}
    first, end = (ceil(month_start(each), bucket_ms) for each in (month, month + 1))
    for from_ms, to_ms in windows(first, end, bucket_ms, ledger.about):
        for pair, columns in fold(ledger.trades(from_ms, to_ms), bucket_ms).items():
            parts.setdefault(pair, []).append(columns)
    return {pair: BucketColumns.concat(found) for pair, found in parts.items()}


def _last_removed(rows: pa.Table) -> dict[Pair, int]:
    """For each pair the price it had just before the last event that deleted from it.

    If that event emptied the pair, its trades were all that was left before, so the newest of
    them gives the price.
    """
    names = ("pair", "sequence", "ts", "input")
    columns = (rows[name].to_pylist() for name in names)
    prices = uint256.to_ints(uint256.from_arrow(rows["price"]))
    last: dict[str, tuple[tuple[int, int, int], int]] = {}
    for pair, sequence, ts, index, price in zip(*columns, prices, strict=True):
        found = (sequence, ts, index), price
        last[pair] = max(last.get(pair, found), found)
    return {parse_pair(pair): price for pair, (_, price) in last.items()}


def _of_pair(table: pa.Table, pair: Pair) -> pa.Array:
    return pc.equal(table["pair"].cast("string"), str(pair))
