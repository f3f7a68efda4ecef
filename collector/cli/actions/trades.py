"""What `collector trades` does, and how the trades of a market are found."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.cli.actions.rows import Rows, first_rows, table_facts
from collector.cli.failures import UsageMistake
from collector.cli.moments import range_ms, shown_moment
from collector.cli.output import Output, number, table
from collector.errors import NotFound
from collector.market.interval import Interval
from collector.market.near import did_you_mean
from collector.operations.connectors import check_exchange
from collector.operations.moments import SPAN_MS
from collector.store.root import storage_at
from collector.store.trade_rows import TRADE_SCHEMA
from collector.store.trades import trade_batches, trade_days, trade_symbols

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.cli.verb import Asked
    from collector.store.port import Storage


@dataclass(frozen=True, slots=True)
class TradeStretch:
    """A range of a market's trades, in epoch ms and inside the days that have a file."""

    storage: Storage
    exchange_id: str
    symbol: str
    days: tuple[Interval, ...]
    from_ms: int
    to_ms: int

    def batches(self, day: Interval | None = None) -> Iterator[pa.RecordBatch]:
        """The trades of a day, or of all."""
        from_ms = self.from_ms if day is None else max(self.from_ms, day.from_ms)
        to_ms = self.to_ms if day is None else min(self.to_ms, day.to_ms)
        return trade_batches(self.storage, self.exchange_id, self.symbol, from_ms, to_ms)

    def rows(self) -> Rows:
        """All of it, to be written to a file."""
        whole = (self.from_ms, self.to_ms)
        hour_ms = SPAN_MS["h"]
        return Rows("trades", TRADE_SCHEMA, self.batches(), *whole, step="hours", step_ms=hour_ms)


def shown(stretch: TradeStretch, limit: int, *, newest: bool) -> Output:
    """The newest trades of the stretch, or else its first."""
    if newest:
        facts = table_facts(last_rows(stretch, limit))
    else:
        facts = table_facts(first_rows(stretch.batches(), TRADE_SCHEMA, limit))
    if not facts["rows"]:
        return Output(facts, "no trades in this range")
    headings = ("time (UTC)", "price", "amount", "side", "id")
    body = [
        (f"{shown_moment(ts)}.{ts % 1000:03}", number(price), number(amount), side, trade_id)
        for trade_id, ts, price, amount, side, _ in facts["rows"]
    ]
    return Output(facts, table(headings, body, right="price amount"))


def stretch_of(
    asked: Asked, exchange_id: str, symbol: str, start: str | None, end: str | None
) -> TradeStretch:
    """What to read. NotFound names the job that collects trades when there are none."""
    now_ms = time.time_ns() // 1_000_000
    check_exchange(exchange_id)
    storage = storage_at(asked.settings().data_root)
    try:
        days = trade_days(storage, exchange_id, symbol)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
    if not days:
        near = did_you_mean(symbol, trade_symbols(storage, exchange_id))
        hint = near or f"; collector job add {exchange_id} trades_incremental --symbol {symbol}"
        raise NotFound(f"no trades are stored for {exchange_id} {symbol!r}{hint}")
    there = Interval(days[0].from_ms, days[-1].to_ms)
    whole = range_ms(start, end, now_ms, there)
    return TradeStretch(storage, exchange_id, symbol, days, *whole)


def last_rows(stretch: TradeStretch, limit: int) -> pa.Table:
    """The newest trades, reading no more days than they fill."""
    found = TRADE_SCHEMA.empty_table()
    for day in reversed(stretch.days):
        if len(found) >= limit:
            break
        found = pa.concat_tables([_last(stretch.batches(day), limit - len(found)), found])
    return found


def _last(batches: Iterator[pa.RecordBatch], limit: int) -> pa.Table:
    kept = TRADE_SCHEMA.empty_table()
    for batch in batches:
        kept = pa.concat_tables([kept, pa.Table.from_batches([batch])])
        kept = kept.slice(max(0, len(kept) - limit))
    return kept
