"""The lake: bars, trades, refused rows and trade history, read from files."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from collector.errors import InvalidInput
from collector.history.reader import HistoryReader
from collector.market.moment import moment_at
from collector.operations.connectors import check_exchange
from collector.operations.history_events import check_network
from collector.operations.history_reads import known_pair
from collector.operations.market_names import check_timeframe
from collector.operations.stored_candles import candle_stretch
from collector.operations.stored_symbol import stored_symbol
from collector.operations.stored_trades import trade_stretch
from collector.store.refused_rows import Place, Which, refused_rows
from collector.store.store import Store
from collector.store.trade_rows import TRADE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.fleet.interface import PairName, PairRange, RowRange, Shown
    from collector.history.reader import Mode
    from collector.operations.stored_candles import CandlesAsked, CandleStretch
    from collector.operations.stored_trades import TradesAsked, TradeStretch
    from collector.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalRows:
    """Rows of a stretch of the lake."""

    stretch: CandleStretch | TradeStretch
    symbol: str
    schema: pa.Schema

    @property
    def from_ms(self) -> int:
        return self.stretch.from_ms

    @property
    def to_ms(self) -> int:
        return self.stretch.to_ms

    def first(self, limit: int) -> pa.Table:
        """Reads no further than they go."""
        taken, kept = 0, []
        for batch in self.stretch.batches():
            kept.append(batch.slice(0, limit - taken))
            taken += len(kept[-1])
            if taken >= limit:
                break
        return pa.Table.from_batches(kept, self.schema)

    def newest(self, limit: int) -> pa.Table:
        return self.stretch.newest(limit)

    @contextmanager
    def all(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        yield self.schema, self.stretch.batches()


@dataclass(frozen=True, slots=True)
class LocalFiles:
    settings: Settings

    def candles(self, asked: CandlesAsked) -> RowRange:
        stretch = candle_stretch(Store(self.settings.data_root), asked)
        return LocalRows(stretch, stretch.reader.series.symbol, stretch.reader.schema)

    def trades(self, asked: TradesAsked) -> RowRange:
        stretch = trade_stretch(Store(self.settings.data_root), asked)
        return LocalRows(stretch, stretch.symbol, TRADE_SCHEMA)

    def quarantine(
        self,
        exchange_id: str,
        symbol: str | None,
        timeframe: str | None,
        limit: int,
        cursor: str | None,
    ) -> Shown:
        frame = None if timeframe is None else check_timeframe(timeframe)
        check_exchange(exchange_id)
        store = Store(self.settings.data_root)
        if symbol is not None:
            symbol = stored_symbol(store, exchange_id, symbol)
        try:
            which = Which(exchange_id, symbol, frame)
        except ValueError as error:
            raise InvalidInput("symbol", "unknown_symbol", str(error)) from None
        try:
            after = None if cursor is None else Place.parse(cursor)
        except ValueError as error:
            raise InvalidInput("cursor", "bad_cursor", str(error)) from None
        found = list(islice(refused_rows(store.storage, which, after), limit + 1))
        page = found[:limit]
        more = str(page[-1].place) if len(found) > limit else None
        return {"items": [each.facts() for each in page], "next_cursor": more}

    def market_rate(self, pair: PairName, mode: Mode, asked: PairRange) -> Shown:
        return self._reader(pair).market_rate(mode, **_arguments(asked))

    def volume(self, pair: PairName, asked: PairRange) -> Shown:
        return self._reader(pair).volume(**_arguments(asked))

    def _reader(self, name: PairName) -> HistoryReader:
        terms, pair = self.settings.history.terms, known_pair(name.base, name.quote)
        check_network(name.network, terms)
        return HistoryReader(
            name.network,
            pair.base,
            pair.quote,
            self.settings.data_root,
            cache=terms.cache,
            bucket_sec=terms.bucket_sec,
        )


def _arguments(asked: PairRange) -> dict[str, Any]:
    return {
        "start": None if asked.start_ms is None else moment_at(asked.start_ms),
        "end": None if asked.end_ms is None else moment_at(asked.end_ms),
        "bucket": asked.bucket,
        "fill": asked.fill,
        "limit": asked.limit,
        "cursor": asked.cursor,
    }
