"""Markets of which bars are stored: which timeframes can be read, and from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from collector.market.letters import fits
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.operations.stored_symbol import stored_symbol
from collector.pipeline.resample import divides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.store.store import Store

LADDER = ("1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "1w", "1M")
"""Longer bars that are made on reading, where shorter ones are stored."""


@dataclass(frozen=True, slots=True)
class StoredMarket:
    """One symbol of an exchange. `first_ms` and `end_ms` are None when there is no bar."""

    exchange_id: str
    symbol: str
    stored: tuple[str, ...]
    """Timeframes with files of their own, the shortest first."""
    made: tuple[str, ...]
    """Longer ones that can be read."""
    first_ms: int | None = None
    end_ms: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.exchange_id, self.symbol


def stored_markets(
    store: Store,
    exchange_id: str | None = None,
    symbol: str | None = None,
    search: str = "",
    *,
    after: tuple[str, str] | None = None,
    limit: int = 100,
) -> list[StoredMarket]:
    """By exchange and symbol, those after `after`. Waits for the disk: call it in a thread."""
    found: list[StoredMarket] = []
    symbol = None if symbol is None else stored_symbol(store, exchange_id, symbol)
    by_market = groupby(store.series(exchange_id), lambda each: (each.exchange_id, each.symbol))
    for key, its in by_market:
        wanted = (symbol is None or key[1] == symbol) and fits(search, key[1])
        if wanted and (after is None or key > after):
            found.append(_market(store, key, [each.timeframe for each in its]))
            if len(found) == limit:
                break
    return found


def _market(store: Store, key: tuple[str, str], stored: Sequence[Timeframe]) -> StoredMarket:
    """Its span is that of the shortest bars, of which the longer ones are made."""
    exchange_id, symbol = key
    span = None
    with store.reading(Series(exchange_id, symbol, stored[0])) as reading:
        span = reading.span()
    ladder = [Timeframe.parse(name).at(exchange_id, symbol) for name in LADDER]
    made = [
        each.name
        for each in ladder
        if each not in stored and any(divides(shorter, each) for shorter in stored)
    ]
    return StoredMarket(
        exchange_id,
        symbol,
        tuple(each.name for each in stored),
        tuple(made),
        None if span is None else span.from_ms,
        None if span is None else span.to_ms,
    )
