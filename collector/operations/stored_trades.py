"""A range of a market's stored trades, and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.errors import InvalidInput, NotFound
from collector.market.interval import Interval
from collector.market.near import did_you_mean
from collector.operations.connectors import check_exchange
from collector.operations.stored_range import inside
from collector.operations.stored_symbol import stored_symbol
from collector.store.trade_rows import TRADE_SCHEMA
from collector.store.trades import trade_batches, trade_days, trade_symbols

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.store.port import Storage
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class TradesAsked:
    """Which trades. Moments are epoch ms; None leaves an end open."""

    exchange_id: str
    symbol: str
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TradeStretch:
    """A range of a market's trades, inside the days that have a file."""

    storage: Storage
    exchange_id: str
    symbol: str
    days: tuple[Interval, ...]
    from_ms: int
    to_ms: int

    @property
    def stored(self) -> Interval:
        return Interval(self.days[0].from_ms, self.days[-1].to_ms)

    def batches(self, day: Interval | None = None) -> Iterator[pa.RecordBatch]:
        """The trades of a day, or of all."""
        from_ms = self.from_ms if day is None else max(self.from_ms, day.from_ms)
        to_ms = self.to_ms if day is None else min(self.to_ms, day.to_ms)
        return trade_batches(self.storage, self.exchange_id, self.symbol, from_ms, to_ms)

    def newest(self, limit: int) -> pa.Table:
        """The newest trades, reading no more days than they fill."""
        found = TRADE_SCHEMA.empty_table()
        for day in reversed(self.days):
            if len(found) >= limit:
                break
            found = pa.concat_tables([_last(self.batches(day), limit - len(found)), found])
        return found


def trade_stretch(store: Store, asked: TradesAsked) -> TradeStretch:
    """What to read. NotFound names near matches, or the job that collects trades."""
    exchange_id, storage = check_exchange(asked.exchange_id), store.storage
    symbol = stored_symbol(store, exchange_id, asked.symbol)
    try:
        days = trade_days(storage, exchange_id, symbol)
    except ValueError as error:
        raise InvalidInput("symbol", "unknown_symbol", str(error)) from error
    if not days:
        near = did_you_mean(symbol, trade_symbols(storage, exchange_id))
        hint = near or f"; collector job add {exchange_id} trades_incremental --symbol {symbol}"
        raise NotFound(f"no trades are stored for {exchange_id} {symbol!r}{hint}")
    there = Interval(days[0].from_ms, days[-1].to_ms)
    whole = inside(asked.start_ms, asked.end_ms, there)
    return TradeStretch(storage, exchange_id, symbol, days, *whole)


def _last(batches: Iterator[pa.RecordBatch], limit: int) -> pa.Table:
    kept = TRADE_SCHEMA.empty_table()
    for batch in batches:
        kept = pa.concat_tables([kept, pa.Table.from_batches([batch])])
        kept = kept.slice(max(0, len(kept) - limit))
    return kept
